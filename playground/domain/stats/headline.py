"""What a list says of a run that has ended: its verdict with one number, and how fast each side was."""

from __future__ import annotations

from dataclasses import dataclass

from playground.domain.record.metrics import request_figures, side_figures
from playground.domain.record.run import Run, SideRecord

from .rounds import rounds_of, run_verdicts
from .verdicts import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Headline:
    """`verdict`, `side`, `speed_up` and `interval` are of the side that differs most from the first; None for a
    race, and without whole rounds. `rates`: each side's output tokens a second, in a race while it decodes; None
    where unknown."""

    rates: tuple[float | None, ...] = ()
    verdict: Outcome | None = None
    side: str | None = None
    speed_up: float | None = None
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, run: Run) -> Headline:
        """Reads every chunk."""
        rates = tuple(_rate(run, side) for side in run.sides)
        verdicts = [verdict for verdict in run_verdicts(run, rounds_of(run)) if verdict.speed_up is not None]
        if not verdicts:
            return cls(rates)
        return cls.of_verdict(max(verdicts, key=lambda verdict: verdict.speed_up or 0), rates)

    @classmethod
    def of_verdict(cls, verdict: Verdict, rates: tuple[float | None, ...] = ()) -> Headline:
        outcome = None if verdict.interval is None else verdict.verdict
        return cls(rates, outcome, verdict.side, verdict.speed_up, verdict.interval)


def _rate(run: Run, side: SideRecord) -> float | None:
    if run.measurement is not None:
        return side_figures(side).output_tokens_per_s
    return request_figures(side.requests[0]).decode_tokens_per_s if side.requests else None
