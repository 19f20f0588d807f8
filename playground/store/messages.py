"""A problem <-> JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..domain.records import Problem


def problem_text(problem: Problem | None) -> str | None:
    return json.dumps(_values(problem), ensure_ascii=False) if problem else None


def problem_of(text: str | None) -> Problem | None:
    return _problem(json.loads(text)) if text else None


def _values(problem: Problem) -> dict[str, object]:
    """A parameter may be a problem itself: the cause of this one."""
    return {
        "message_id": problem.message_id,
        "params": {name: _plain(value) for name, value in problem.params.items()},
    }


def _plain(value: object) -> object:
    if isinstance(value, Problem):
        return {"problem": _values(value)}
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _problem(values: Mapping[str, Any]) -> Problem:
    params = {
        name: _problem(value["problem"]) if isinstance(value, dict) else value
        for name, value in values["params"].items()
    }
    return Problem(values["message_id"], params)
