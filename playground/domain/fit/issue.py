"""Issues that speak against a start, with the settings that resolve them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.change import Change

Level = Literal["note", "warning", "unknown", "blocking"]
# Settings changed together.
Changes = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class FitIssue:
    """One issue. `blocking`: it will not work. `certain`: no estimate is involved, so that a start is refused.

    `unknown`: the information to judge is missing.
    """

    problem: Message
    level: Level
    certain: bool = False
    remedies: tuple[Changes, ...] = ()
