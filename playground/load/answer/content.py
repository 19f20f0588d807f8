"""The text of a delta or message: a string, or a list of parts; reasoning, refusals and tool calls count too."""

from __future__ import annotations

from typing import Any

import orjson

# Where a part keeps its text, by the kinds of parts that servers send.
PART_KEYS = ("text", "thinking", "reasoning", "refusal", "content")
# Parts in parts: thinking is a list of text parts.
DEEPEST = 4


def text_of(delta: dict[str, Any]) -> str:
    """All text that a delta bears, in the order in which models write it. Raises TypeError for another shape."""
    thought = delta.get("reasoning_content") or delta.get("reasoning") or delta.get("thinking")
    text = delta.get("content") or ""
    if type(text) is not str:
        text = _parts(text)
    if thought:
        text = (thought if type(thought) is str else _parts(thought)) + text
    elif details := delta.get("reasoning_details"):
        text = _parts(details) + text
    if refusal := delta.get("refusal"):
        text += _parts(refusal)
    for call in delta.get("tool_calls") or ():
        text += _call(call.get("function"))
    return text + _call(delta["function_call"]) if "function_call" in delta else text


def _call(function: dict[str, Any] | None) -> str:
    """The pieces of a tool call: its name comes first, its arguments bit by bit."""
    if not function:
        return ""
    arguments = function.get("arguments") or ""
    return (function.get("name") or "") + (
        arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    )


def _parts(content: object, depth: int = 0) -> str:
    """Text in a string, in an object or in a list of both. What bears none (an image) adds nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and depth < DEEPEST:
        return "".join(_parts(part, depth + 1) for part in content)
    if isinstance(content, dict) and depth < DEEPEST:
        return _parts(next((content[key] for key in PART_KEYS if content.get(key)), ""), depth + 1)
    if content is None:
        return ""
    raise TypeError(content)
