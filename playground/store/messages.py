"""A problem <-> JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from playground.domain.message import Message, Section


def message_text(problem: Message | None) -> str | None:
    return json.dumps(_values(problem), ensure_ascii=False) if problem else None


def message_of(text: str | None) -> Message | None:
    return _problem(json.loads(text)) if text else None


def _values(problem: Message) -> dict[str, object]:
    """A parameter may be a problem itself: the cause of this one."""
    return {
        "message_id": problem.message_id,
        "params": {name: _plain(value) for name, value in problem.params.items()},
    }


def _plain(value: object) -> object:
    if isinstance(value, Section):
        value = Message(value.value)
    if isinstance(value, Message):
        return {"problem": _values(value)}
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _problem(values: Mapping[str, Any]) -> Message:
    params = {
        name: _problem(value["problem"]) if isinstance(value, dict) else value
        for name, value in values["params"].items()
    }
    return Message(values["message_id"], params)
