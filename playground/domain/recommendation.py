"""From a sweep's results to the setting to deploy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .changes import Value
from .measurement import MIN_ROUNDS
from .merits import merits
from .records import Problem, SideRecord
from .speculation import BestK, best_k
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


def recommended_side(sweep: Sweep) -> SideRecord | None:
    """What the recommendation deploys: of its point the side that it names; of "off" the first side."""
    best = recommendation(sweep)
    measured = [point.run for point in sweep.points if point.run is not None]
    if best.values == "off":
        return measured[0].sides[0] if measured else None
    run = sweep.points[best.number].run if best.number is not None else None
    sides = run.sides if run is not None else []
    return next((side for side in sides if side.label == best.side), None)


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
    """The best of all sides of all points. Where the next best one's interval overlaps, that is said."""
    found = [merit for result in results(sweep) for merit in merits(sweep, result) if merit.interval is not None]
    if not found:
        return Recommendation(None, Problem("sweep.nothing_known", {"least": MIN_ROUNDS}))
    found.sort(key=lambda merit: -merit.log)
    best, *others = found
    rival = next((merit for merit in others if merit.point.number != best.point.number), None)
    number, values, label = best.point.number, best.point.values, best.side.label
    params: dict[str, object] = {
        "side": label,
        "values": described(sweep, values),
        "value": best.side.value,
        "metric": Problem(f"sweep.unit_{sweep.case.workload.objective}"),
    }
    if rival is None:
        return Recommendation(values, Problem("sweep.only_one", params), number, label)
    params["rival"] = described(sweep, rival.point.values)
    reason = Problem("sweep.best_unsure" if best.overlaps(rival) else "sweep.best_clear", params)
    return Recommendation(values, reason, number, label)
