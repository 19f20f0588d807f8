"""From a sweep's results to the setting to deploy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .changes import Value
from .measurement import MIN_ROUNDS
from .records import Problem
from .speculation import BestK, best_k
from .statistics import LOWER_IS_BETTER
from .sweep import Sweep
from .sweep_results import K_NAMES, described, k_index, results, speculation_points, synthetic


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The values to deploy; "off": switch speculation off; None: nothing to recommend. `number`: its point."""

    values: tuple[Value, ...] | Literal["off"] | None
    reason: Problem
    number: int | None = None
    side: str | None = None


def recommendation(sweep: Sweep) -> Recommendation:
    """The best measured values, by the workload's objective."""
    if not all(knob.of_engines for knob in sweep.plan.knobs):
        return Recommendation(None, Problem("sweep.circumstance"))
    if synthetic(sweep):
        return Recommendation(None, Problem("sweep.synthetic"))
    if any(knob.name in K_NAMES for knob in sweep.plan.knobs) and (found := _best_k(sweep)) is not None:
        return found
    return _best_point(sweep)


def _best_k(sweep: Sweep) -> Recommendation | None:
    """Where k is varied against no speculation: the k to take, or none. Of several sides, the fastest one's."""
    if len(sweep.plan.knobs) > 1:
        return None
    chosen: list[tuple[float, str, BestK, int | None]] = []
    for (label, _), measured in speculation_points(sweep).items():
        if k_index(sweep, label) is None:
            continue
        best = best_k([point for _, point in measured])
        number, speed = next(((n, p.speed_up) for n, p in measured if p.k == best.k), (None, 1.0))
        chosen.append((speed, label, best, number))
    if not chosen:
        return None
    _, label, best, number = max(chosen, key=lambda item: item[0])
    if isinstance(best.k, int):
        return Recommendation((best.k,), best.reason, number, label)
    return Recommendation(best.k, best.reason, None, label)


def _best_point(sweep: Sweep) -> Recommendation:
    """The best of all sides of all points. Points are measured one after the other, so that drift between them is
    part of their difference: where the next best one's interval overlaps, that is said."""
    lower = sweep.case.workload.objective in LOWER_IS_BETTER
    varied = {knob.side for knob in sweep.plan.knobs}
    found = [
        (result, side)
        for result in results(sweep)
        for side in result.sides
        if side.value is not None and side.interval is not None and (None in varied or side.label in varied)
    ]
    if not found:
        return Recommendation(None, Problem("sweep.nothing_known", {"least": MIN_ROUNDS}))
    found.sort(key=lambda item: (item[1].value or 0) * (1 if lower else -1))
    (best, side), *others = found
    rival = next((item for item in others if item[0].number != best.number), None)
    params: dict[str, object] = {
        "side": side.label,
        "values": described(sweep, best.values),
        "value": side.value,
        "metric": Problem(f"sweep.unit_{sweep.case.workload.objective}"),
    }
    if rival is None:
        return Recommendation(best.values, Problem("sweep.only_one", params), best.number, side.label)
    params["rival"] = described(sweep, rival[0].values)
    clear = not _overlap(side.interval, rival[1].interval)
    reason = Problem("sweep.best_clear" if clear else "sweep.best_unsure", params)
    return Recommendation(best.values, reason, best.number, side.label)


def _overlap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])
