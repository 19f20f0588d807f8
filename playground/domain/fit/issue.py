"""What speaks against a start, with the settings that mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .changes import Change
from .records import Problem

Level = Literal["note", "warning", "unknown", "blocking"]
# Settings changed together.
Remedy = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Concern:
    """One reason. `blocking`: it will not work; `certain`: and no estimate is involved, so a start is refused.

    `unknown`: what it would take to judge is missing.
    """

    problem: Problem
    level: Level
    certain: bool = False
    remedies: tuple[Remedy, ...] = ()
