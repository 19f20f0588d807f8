"""How the usual data sets call what a prompts file says."""

from __future__ import annotations

import re

# As `key` writes them.
ROLES = {
    **dict.fromkeys(["user", "human", "prompter", "customer", "questioner", "instruction"], "user"),
    **dict.fromkeys(
        [
            "assistant",
            "gpt",
            "chatgpt",
            "bing",
            "bard",
            "model",
            "ai",
            "bot",
            "chatbot",
            "claude",
            "gpt4",
            "gpt-4",
            "gemini",
            "agent",
            "answer",
            "output",
        ],
        "assistant",
    ),
    **dict.fromkeys(["system", "developer"], "system"),
}
CHATS = [
    "messages",
    "conversations",
    "conversation",
    "turns",
    "items",
    "dialog",
    "dialogue",
    "chat",
    "contents",
    "conversation_a",
]
TEXTS = [
    "prompt",
    "question",
    "query",
    "instruction",
    "problem",
    "user_prompt",
    "user_input",
    "input",
    "text",
    "content",
    "message",
    "prompts",
    "questions",
    "user",
    "goal",
    "problem_statement",
    "inputs",
    "text_input",
]
# What belongs to an instruction or a question.
MORE = ("input", "context")
SYSTEM = ("system", "system_prompt", "system_message")
# Around an entry, a question, or its limit.
WRAPPERS = ("body", "row", "payload", "request", "prompt", "input")
PARAMETERS = ("parameters", "sampling_params", "sampling_parameters", "generation_config")
# A picture or a sound, without which the text is another question.
MEDIA = ("image", "images", "video", "videos", "audio", "audios", "image_path", "image_url", "multi_modal_data")
LIMITS = [
    "max_tokens",
    "max_completion_tokens",
    "output_tokens",
    "output_len",
    "output_length",
    "max_new_tokens",
    "max_output_tokens",
    "expected_output_len",
    "output_tokens_count",
]
SPEAKERS = ("role", "from", "speaker", "author", "sender")
CONTENTS = ("content", "value", "text", "message", "parts")
KEYS = frozenset((*CHATS, *TEXTS))
SEPARATORS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")


def key(name: object) -> str:
    """A name as it is compared: `Max Tokens`, `max-tokens` and `maxTokens` are `max_tokens`."""
    return SEPARATORS.sub("_", str(name).strip()).lower()
