"""The result of one point of a sweep, derived from its run. Nothing here is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median, stdev

from playground.domain.message import Message
from playground.domain.record.figures import SideFigures
from playground.domain.record.metrics import request_figures, side_figures
from playground.domain.record.run import Run, Trial
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.stats.intervals import half_width
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.domain.stats.verdicts import MOST_LEFT_OUT, Verdict

LATENCIES = ("ttft", "tpot", "e2el")


@dataclass(frozen=True, slots=True)
class GeometricMean:
    """A figure's geometric mean over rounds, and from six rounds on its 95% t interval, both of the logs."""

    value: float | None
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> GeometricMean:
        """The mean of one value a round. What is unknown or not above 0 has no log and is left out; with more than
        one such round in ten the mean is unknown, since they are the bad ones."""
        logs = [log(value) for value in values if value is not None and value > 0]
        if not logs or len(values) - len(logs) > MOST_LEFT_OUT * len(values):
            return cls(None, None)
        mean = fmean(logs)
        if len(logs) < MIN_ROUNDS:
            return cls(exp(mean), None)
        half = half_width(stdev(logs), len(logs))
        return cls(exp(mean), (exp(mean - half), exp(mean + half)))


@dataclass(frozen=True, slots=True)
class SideResult:
    """One side at one point.

    `objective` is the workload's (ms, tokens/s or requests/s). `verdict` compares it with the point's first side;
    None for that side itself. `throughput` is output tokens/s; `medians` has each round's median of TTFT, TPOT and
    E2EL in ms, by LATENCIES.
    """

    label: str
    figures: SideFigures
    objective: GeometricMean
    verdict: Verdict | None
    throughput: GeometricMean
    medians: dict[str, GeometricMean]


@dataclass(frozen=True, slots=True)
class PointResult:
    """The result of one point. Without sides it was not measured."""

    number: int
    values: tuple[Value, ...]
    run: Run | None
    sides: tuple[SideResult, ...]

    @classmethod
    def of(cls, number: int, values: tuple[Value, ...], run: Run | None) -> PointResult:
        """Reads every chunk of the run."""
        return cls(number, values, run, _sides(run) if run is not None else ())

    @property
    def run_id(self) -> str | None:
        return self.run.id if self.run is not None else None

    @property
    def problem(self) -> Message | None:
        """Why it failed, if it did."""
        return self.run.problem if self.run is not None else None

    def side(self, label: str) -> SideResult | None:
        return next((side for side in self.sides if side.label == label), None)


def _sides(run: Run) -> tuple[SideResult, ...]:
    """The results of the sides that were measured at all."""
    rounds, rates = rounds_of(run), rounds_of(run, "throughput")
    verdicts = {verdict.side: verdict for verdict in run_verdicts(run, rounds)}
    return tuple(
        SideResult(
            side.label,
            side_figures(side, run.measurement),
            GeometricMean.of([round_.values[side.label] for round_ in rounds]),
            verdicts.get(side.label),
            GeometricMean.of([round_.values[side.label] for round_ in rates]),
            _medians(side.trials[: len(rounds)]),
        )
        for side in run.sides
        if side.trials
    )


def _medians(trials: Sequence[Trial]) -> dict[str, GeometricMean]:
    figures = [[request_figures(trace) for trace in trial.requests] for trial in trials]
    return {
        name: GeometricMean.of(
            [_median([getattr(request, f"{name}_ms") for request in trial]) for trial in figures]
        )
        for name in LATENCIES
    }


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
