"""Whether a run that was repeated came to the same: of each side by its objective, and of each speed-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from playground.domain.record.run import Run

from .ratios import Ratio, quotient
from .rounds import rounds_of, run_verdicts

Agreement = Literal["agrees", "changed", "unknown"]


@dataclass(frozen=True, slots=True)
class Change:
    """What came out of `side` in the first run and in another: its objective's figure, or with a `baseline` the
    speed-up over that side.

    `interval` of the other's divided by the first's: all intervals of one answer hold together at 95%, so that
    four figures give no more false alarms than one. It is by the rounds of both runs (Welch's t on logs): what
    varies from one start of an engine to the next is not in it.
    """

    side: str
    baseline: str | None
    first: Ratio
    other: Ratio
    interval: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.other.value / self.first.value

    @property
    def agrees(self) -> bool:
        return self.interval[0] <= 1 <= self.interval[1]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`changes`: speed-ups first, then the sides themselves. `whole`: none is missing for want of rounds."""

    changes: tuple[Change, ...]
    whole: bool

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Repetition:
        """Each run after the first, against it."""
        first, *others = map(_ratios, runs)
        labels = [side.label for side in runs[0].sides]
        pairs = [(place, ratio, other.get(place)) for other in others for place, ratio in first.items()]
        known = [(place, before, after) for place, before, after in pairs if before and after]
        changes = [
            Change(
                labels[index],
                labels[0] if relative else None,
                before,
                after,
                quotient(after, before).interval_of_one_in(len(known)),
            )
            for (relative, index), before, after in known
        ]
        return cls(tuple(changes), len(known) == len(pairs))

    @property
    def agreement(self) -> Agreement:
        if not all(change.agrees for change in self.changes):
            return "changed"
        return "agrees" if self.whole else "unknown"


def _ratios(run: Run) -> dict[tuple[bool, int], Ratio | None]:
    """By whether it is a speed-up, and the side's position: None without an interval."""
    rounds = rounds_of(run)
    speed_ups = enumerate(map(Ratio.of_verdict, run_verdicts(run, rounds)), start=1)
    figures = (Ratio.of_values([item.values[side.label] for item in rounds]) for side in run.sides)
    return {
        **{(True, index): ratio for index, ratio in speed_ups},
        **{(False, index): ratio for index, ratio in enumerate(figures)},
    }
