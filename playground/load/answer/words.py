"""The server's own words: what an error, a page or a foreign answer says, short enough for a sentence."""

from __future__ import annotations

import html
import re
from typing import Any

import orjson

# Where servers say what is wrong, in the order in which they are looked at.
KEYS = (
    *("error", "message", "detail", "msg", "errors", "error_message", "error_msg", "description", "reason"),
    "Message",
)
MOST = 500
# Objects in objects: a proxy wraps its provider's error.
DEEPEST = 6
UNSEEN = re.compile(r"<(script|style|head)\b.*?(</\1\s*>|$)|<!--.*?(-->|$)|<[^>]*>?", re.DOTALL | re.IGNORECASE)
TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def said_by(value: Any) -> str:
    """The message of an error in JSON, whatever it is wrapped in."""
    for _ in range(DEEPEST):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, dict):
            break
        metadata = value.get("metadata")
        raw = metadata.get("raw") if isinstance(metadata, dict) else None
        said = next((value[key] for key in KEYS if value.get(key)), None)
        if said is None:
            break
        if raw and isinstance(said, str):
            return _short(f"{said}: {raw}")
        value = said
    return _short(_written(value))


def excerpt(value: dict[str, Any]) -> str:
    """The message of an object if it has one, else its beginning."""
    return (
        said_by(value)[:200]
        if any(isinstance(value.get(key), str) for key in KEYS)
        else _short(_written(value), 200)
    )


def _written(value: Any) -> str:
    """As a server writes it: text, or JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def said_in(text: str, most: int = MOST) -> str:
    """What a body that is no JSON says; of a page in HTML what a reader sees of it."""
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        title = TITLE.search(text)
        seen = html.unescape(UNSEEN.sub(" ", text))
        name = html.unescape(title[1]).strip() if title else ""
        text = seen if name in seen else f"{name.rstrip('.')}. {seen}" if seen.strip() else name
    return _short(text, most)


def _short(text: str, most: int = MOST) -> str:
    """On one line, without signs that a terminal would obey."""
    text = "".join(sign if sign.isprintable() else " " for sign in text[: 4 * most])
    return " ".join(text.split())[:most]
