"""The state of a run under way. Pages and the command line only read it; one task writes it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from playground.domain.record.run import Run, StartStage

Phase = Literal[
    "waiting",
    "preparing",
    "starting",
    "streaming",
    "warming_up",
    "measuring",
    "checking",
    "scoring",
    "evaluating",
    "finished",
]
# Those after the last round.
EXAMINING: tuple[Phase, ...] = ("checking", "scoring", "evaluating")


@dataclass
class RunProgress:
    """The start of one side. `stage` is a message id's last part under `stage.`; `since` is monotonic; `passed`:
    the stages before."""

    stage: str = "waiting"
    since: float = field(default_factory=time.monotonic)
    fraction: float | None = None
    ready_after_s: float | None = None
    passed: list[StartStage] = field(default_factory=list)

    def advance(self, stage: str, fraction: float | None = None) -> None:
        if stage != self.stage:
            now = time.monotonic()
            # What is ready waits for the others: no part of its start.
            if self.stage != "ready":
                self.passed.append(StartStage(self.stage, now - self.since))
            self.since = now
        self.stage, self.fraction = stage, fraction


@dataclass
class Live:
    """The state of a run under way; `run` grows as results arrive. `since` (monotonic) is when the race or the
    first round began; `serving` is the side whose turn it is in measured mode; `checked` holds how many of the
    questions that follow the last round are answered, and how many there are. `starting_since` (monotonic) is when
    the engines began to start, `starts_s` how long they took, `usual_start_s` how long one usually takes here, if
    that is known."""

    run: Run
    progress: list[RunProgress]
    phase: Phase = "waiting"
    since: float | None = None
    serving: int | None = None
    checked: tuple[int, int] = (0, 0)
    starting_since: float | None = None
    starts_s: float | None = None
    usual_start_s: float | None = None
