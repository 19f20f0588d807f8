"""What an entry of a prompts file says."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.workload import ChatMessage, Conversation, Prompt
from playground.domain.unicode import mended

from .keys import CHATS, CONTENTS, KEYS, LIMITS, MEDIA, MORE, PARAMETERS, ROLES, SPEAKERS, SYSTEM, TEXTS, WRAPPERS
from .keys import key as key_of

# Of an entry without a prompt, so many keys are named, in so many characters.
MOST_NAMED = 12
LONGEST_NAMES = 200
# A longer cell is not tried as Python, whose parser takes much memory.
LONGEST_CELL = 1_000_000

BLANK = Message("prompts.blank")
NO_USER = Message("prompts.no_user")
NOT_TEXT = Message("prompts.not_text")
FIRST_TURN = Message("prompts.first_turn")
UP_TO_USER = Message("prompts.up_to_user")


@dataclass(frozen=True, slots=True)
class Read:
    """A prompt, or None and why. With a prompt, `why` says what of its entry is not sent."""

    prompt: Prompt | None
    why: Message | None = None


def prompts_of(entry: object, file: str, place: Message) -> Iterator[Read]:
    """What the entry says: usually one prompt. Raises InvalidInput for an entry in which nothing is known."""
    values = _values(entry)
    if values is None or not values:
        raise InvalidInput("prompts.bad_entry", file=file, place=place)
    if not KEYS & values.keys():
        names = ", ".join([*values][:MOST_NAMED])
        raise InvalidInput("prompts.no_known_key", file=file, place=place, keys=names[:LONGEST_NAMES])
    if any(values.get(name) for name in MEDIA):
        yield Read(None, NOT_TEXT)
        return
    limit = _limit(values, file, place)
    chats = [key for key in CHATS if isinstance(values.get(key), list | str)]
    key = next((key for key in TEXTS if values.get(key) is not None), None)
    # A table has all columns in every row: an empty conversation counts only where there is no text.
    if chat := next((name for name in chats if values[name]), None if key else next(iter(chats), None)):
        yield _chat(values[chat], chat == "conversations", _system(values), limit, file, place)
        return
    value = "" if key is None else values[key]
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        for text in value:
            yield _text(text, values, key, limit)
    elif isinstance(value, list) and all(isinstance(turn, dict) for turn in value):
        yield _chat(value, False, _system(values), limit, file, place)
    elif isinstance(value, str):
        yield _text(value, values, key, limit)
    else:
        raise InvalidInput("prompts.bad_entry", file=file, place=place)


def _values(entry: object) -> dict[str, Any] | None:
    """The entry's keys in small letters, with those that it wraps; None if it is no entry."""
    if isinstance(entry, str):
        return {"prompt": entry}
    if isinstance(entry, list) and entry and all(isinstance(turn, dict) for turn in entry):
        return {"messages": entry}
    if not isinstance(entry, dict):
        return None
    values = _small(entry)
    for wrapper in (*WRAPPERS, *PARAMETERS):
        inner = values.get(wrapper)
        if isinstance(inner, list) and len(inner) == 1 and wrapper == "payload":
            inner = inner[0]
        if isinstance(inner, dict):
            values.pop(wrapper)
            values |= _small(inner)
    return values


def _small(entry: Mapping[Any, Any]) -> dict[str, Any]:
    return {key_of(name): value for name, value in entry.items()}


def _limit(values: Mapping[str, Any], file: str, place: Message) -> int | None:
    value = next((values[key] for key in LIMITS if values.get(key) not in (None, "")), None)
    # Tables have numbers as text or with a point, and "no number" where there is none.
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal() and len(value) < 19:
        value = int(value)
    if isinstance(value, float):
        value = None if value != value else int(value) if value.is_integer() and value < 1e15 else value
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidInput("prompts.bad_max_tokens", file=file, place=place, value=value)
    return value


def _system(values: Mapping[str, Any]) -> Conversation:
    texts = [_content(values.get(key)) for key in SYSTEM]
    text = next((text for text in texts if text is not None and text.strip()), None)
    return () if text is None else (ChatMessage(role="system", content=mended(text)),)


def _text(text: str, values: Mapping[str, Any], key: str | None, limit: int | None) -> Read:
    role = values.get("role")
    if isinstance(role, str) and ROLES.get(role.strip().lower(), "user") != "user":
        # One message on each row: this one is another's.
        return Read(None, NO_USER)
    if not text.strip():
        return Read(None, BLANK)
    if key in ("instruction", "question", "query", "input"):
        more = [
            values[name]
            for name in MORE
            if name != key and isinstance(values.get(name), str) and values[name].strip()
        ]
        text = "\n\n".join((text, *more))
    asks = ChatMessage(role="user", content=mended(text))
    return Read(Prompt(conversation=(*_system(values), *_history(values), asks), max_tokens=limit))


def _history(values: Mapping[str, Any]) -> Conversation:
    """The turns before the question: pairs of a question and its answer (LLaMA-Factory), or messages."""
    pairs = values.get("history")
    if not isinstance(pairs, list):
        return ()
    if pairs and all(isinstance(turn, dict) for turn in pairs):
        return tuple(_plain(pairs, False)[0])
    pairs = [pair for pair in pairs if isinstance(pair, list) and [type(text) for text in pair] == [str, str]]
    return tuple(
        ChatMessage.model_validate({"role": role, "content": mended(text)})
        for pair in pairs
        for role, text in zip(("user", "assistant"), pair, strict=True)
    )


def _chat(
    turns: object, first_only: bool, system: Conversation, limit: int | None, file: str, place: Message
) -> Read:
    """A conversation up to its last user's turn; of a recorded one (ShareGPT) the first, since later ones answer
    another model."""
    if isinstance(turns, str):
        turns = _parsed(turns)
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise InvalidInput("prompts.bad_messages", file=file, place=place)
    turns, first_only = _turns(turns, first_only)
    if not all(isinstance(turn, dict) for turn in turns):
        raise InvalidInput("prompts.bad_messages", file=file, place=place)
    first_only = first_only or any("from" in turn for turn in turns)
    conversation, textless = _plain(turns, first_only)
    end = len(conversation)
    while end and not (conversation[end - 1].role == "user" and conversation[end - 1].content.strip()):
        end -= 1
    if not end:
        blank = any(message.role == "user" for message in conversation)
        return Read(None, NOT_TEXT if textless else BLANK if blank else NO_USER)
    kept = conversation[:end]
    if first_only:
        kept = [message for message in kept if message.role != "assistant"]
    left_out = len(turns) > len(kept)
    if kept[0].role != "system":
        kept = [*system, *kept]
    why = (FIRST_TURN if first_only else UP_TO_USER) if left_out else None
    return Read(Prompt(conversation=tuple(kept), max_tokens=limit), why)


def _turns(turns: Sequence[Any], first_only: bool) -> tuple[Sequence[Any], bool]:
    """The turns with a speaker and a content each, and whether the first of the user counts alone."""
    if turns and all(isinstance(turn, str) for turn in turns):
        # MT-bench and Arena-Hard: questions of which the later ones follow on an answer.
        return [{"role": "user", "content": turn} for turn in turns], True
    if not all(isinstance(turn, dict) for turn in turns):
        return turns, first_only
    if turns and all(_by_speaker(turn) for turn in turns):
        said = [pair for turn in turns for pair in _by_speaker(turn).items()]
        return [{"role": speaker, "content": text} for speaker, text in said], first_only
    if all(not turn.keys() & {*SPEAKERS} for turn in turns):
        return [{"role": "user", **turn} for turn in turns], True
    return turns, first_only


def _by_speaker(turn: Mapping[Any, Any]) -> Mapping[str, str]:
    """What each says in a turn such as {"human": ..., "assistant": ...}; nothing for another kind of turn."""
    said = {name: text for name, text in turn.items() if str(name).lower() in ROLES}
    known = any(ROLES[str(name).lower()] == "user" for name in said) and not {*SPEAKERS, *CONTENTS} & turn.keys()
    return said if known and all(isinstance(text, str) for text in said.values()) else {}


def _plain(turns: Sequence[Mapping[Any, Any]], first_only: bool) -> tuple[list[ChatMessage], bool]:
    """The turns until one that can't be sent (a tool's, an image), and whether a user's turn was such a one."""
    conversation: list[ChatMessage] = []
    for turn in turns:
        named = next((turn[key] for key in SPEAKERS if key in turn), None)
        role = ROLES.get(named.strip().lower()) if isinstance(named, str) else None
        content = _content(next((turn[key] for key in CONTENTS if key in turn), None))
        if role is None or content is None:
            return conversation, role == "user"
        conversation.append(ChatMessage.model_validate({"role": role, "content": mended(content)}))
        if first_only and role == "user":
            break
    return conversation, False


def _content(content: object) -> str | None:
    """A string, or a list of text parts; None for anything else (images, tool calls)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        return None
    texts = [
        part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None for part in content
    ]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if len(known) == len(texts) else None


def _parsed(text: str) -> Any:
    """A table's cell may hold the conversation as JSON, or as Python writes it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > LONGEST_CELL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
