"""Every sentence that users read, by message id and locale. The sentences are in `messages/*.toml`, one file a
topic: [section], [section.name], then locale -> text. Each section is in one file.

A message id is dotted (`engine.failed`); parameters are filled in by `str.format`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from playground.domain.errors import PlaygroundError
from playground.domain.message import Message, Section

Locale = Literal["en", "zh-CN"]
LOCALES: tuple[Locale, ...] = ("en", "zh-CN")


@cache
def table() -> dict[str, dict[Locale, str]]:
    """Message id -> locale -> sentence."""
    files = sorted(Path(__file__).with_name("messages").glob("*.toml"))
    return {
        f"{section}.{name}": translations
        for file in files
        for section, messages in tomllib.loads(file.read_text(encoding="utf-8")).items()
        for name, translations in messages.items()
    }


def say(message_id: str, locale: Locale = "en", **params: object) -> str:
    """The sentence, filled in. An unknown id is a programming error: KeyError."""
    return table()[message_id][locale].format(**params)


class _Params(dict[str, object]):
    """A message's parameters. One that an older version did not store is rendered as unknown."""

    def __missing__(self, name: str) -> object:
        return _Unknown()


class _Unknown:
    def __format__(self, spec: str) -> str:
        return "-"


def say_message(message: Message | PlaygroundError, locale: Locale = "en") -> str:
    """The sentence of a message or an error. Parameters that are messages are rendered first. A stored message may
    be one that only a newer version knows."""
    if message.message_id not in table():
        return say("history.newer_message", locale, id=message.message_id)
    params = {name: _rendered(value, locale) for name, value in message.params.items()}
    return table()[message.message_id][locale].format_map(_Params(params))


def _rendered(value: object, locale: Locale) -> object:
    match value:
        case Message():
            return say_message(value, locale)
        case Section():
            return say(value.value, locale)
    return value


def locale_of(accept_language: str | None) -> Locale:
    """The best locale for an Accept-Language header: the first listed language that we have, else English."""
    for item in (accept_language or "").lower().split(","):
        if item.strip().startswith("zh"):
            return "zh-CN"
        if item.strip().startswith("en"):
            return "en"
    return "en"
