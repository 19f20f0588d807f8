"""The highest load at which each side keeps the limits, from a sweep of that load. Nothing here is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, log

from playground.domain.record.metrics import request_figures
from playground.domain.record.run import Trial
from playground.domain.spec.workload import Limits
from playground.domain.stats.ratios import Ratio
from playground.domain.stats.rounds import whole_rounds

from .record import Sweep

LOADS = ("concurrency", "requests_per_s")
# So many of a round's requests have to keep each limit.
SHARE = 0.9


@dataclass(frozen=True, slots=True)
class HighestLoad:
    """Of one side, in the unit of the sweep's knob. `load`: with its 95% interval by rounds; None where it lies
    outside the loads that were measured, or there are too few rounds. `at_least` and `below` then say what is
    known. `ratio`: to the first side's."""

    side: str
    load: Ratio | None
    at_least: float | None = None
    below: float | None = None
    ratio: Ratio | None = None


def highest_loads(sweep: Sweep) -> list[HighestLoad]:
    """One for each side; none where no load is swept alone, no limit is set, or a request failed."""
    limits = sweep.case.measurement.limits
    if len(sweep.plan.knobs) != 1 or sweep.plan.knobs[0].name not in LOADS or not limits.is_set:
        return []
    done = [record for record in sweep.points if record.run is not None and record.run.status == "done"]
    points = sorted((float(str(record.values[0])), record.run) for record in done if record.run is not None)
    rounds = min((whole_rounds(run) for _, run in points), default=0)
    if len(points) < 2 or not rounds:
        return []
    loads = [load for load, _ in points]
    highest: list[HighestLoad] = []
    crossings: list[list[float | None]] = []
    for index, side in enumerate(sweep.case.sides):
        trials = [[run.sides[index].trials[number] for _, run in points] for number in range(rounds)]
        table = [[_slack(trial, limits) for trial in row] for row in trials]
        if any(slack is None for row in table for slack in row):
            return []
        known = [[slack for slack in row if slack is not None] for row in table]
        crossings.append([_crossing(loads, row) for row in known])
        ratio = None
        if index:
            paired = zip(crossings[index], crossings[0], strict=True)
            ratio = Ratio.of_values([own / first if own and first else None for own, first in paired])
        load = Ratio.of_values(crossings[index])
        # How far every round kept the limits, and from where on none did.
        so_far = [(load, [min(row[: number + 1]) for row in known]) for number, load in enumerate(loads)]
        kept = [load for load, slacks in so_far if min(slacks) >= 0]
        broken = [load for load, slacks in so_far if max(slacks) < 0]
        highest.append(HighestLoad(side.label, load, max(kept, default=None), min(broken, default=None), ratio))
    return highest


def _slack(trial: Trial, limits: Limits) -> float | None:
    """How far the trial keeps the limits, as a log: below 0 it does not keep them. None if that is unknown."""
    figures = [request_figures(trace) for trace in trial.requests]
    if not figures or any(trace.problem for trace in trial.requests):
        return None
    slacks: list[float] = []
    for name, limit in limits:
        if limit is not None:
            values = sorted(value for item in figures if (value := getattr(item, name)))
            if not values:
                return None
            slacks.append(log(limit / values[ceil(SHARE * len(values)) - 1]))
    return min(slacks)


def _crossing(loads: Sequence[float], slacks: Sequence[float]) -> float | None:
    """Where the slack first falls below 0, on a line through the logs of the loads; None if it does not, or is
    below 0 from the beginning."""
    if slacks[0] < 0:
        return None
    for (low, before), (high, after) in pairwise(zip(loads, slacks, strict=True)):
        if after < 0:
            return exp(log(low) + (log(high) - log(low)) * before / (before - after))
    return None
