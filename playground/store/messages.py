"""Converts messages to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from playground.domain.message import Message, Section


def message_text(message: Message | None) -> str | None:
    return json.dumps(_values(message), ensure_ascii=False) if message else None


def message_of(text: str | None) -> Message | None:
    return _message(json.loads(text)) if text else None


def _values(message: Message) -> dict[str, object]:
    """A parameter may be a message itself: the cause of this one. Its key is "problem", as in older databases."""
    return {
        "message_id": message.message_id,
        "params": {name: _plain(value) for name, value in message.params.items()},
    }


def _plain(value: object) -> object:
    if isinstance(value, Section):
        value = Message(value.value)
    if isinstance(value, Message):
        return {"problem": _values(value)}
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _message(values: Mapping[str, Any]) -> Message:
    params = {
        name: _message(value["problem"]) if isinstance(value, dict) else value
        for name, value in values["params"].items()
    }
    return Message(values["message_id"], params)
