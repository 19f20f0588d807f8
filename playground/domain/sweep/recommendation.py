"""From a sweep's results to the setting to deploy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from playground.domain.message import Message
from playground.domain.record.run import SideRecord
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.spec.settings import EngineSettings
from playground.domain.speculation.theory import BestK, best_k
from playground.domain.stats.rounds import whole_rounds

from .analysis import K_NAMES, described, k_index, results, speculation_points, synthetic
from .plan import value_text
from .rank import Merit, merits
from .record import Sweep


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The values to deploy; "off": switch speculation off; None: nothing to recommend. `number`: its point."""

    values: tuple[Value, ...] | Literal["off"] | None
    reason: Message
    number: int | None = None
    side: str | None = None


def recommendation(sweep: Sweep) -> Recommendation:
    """The best measured values, by the workload's objective."""
    if synthetic(sweep):
        return Recommendation(None, Message("sweep.synthetic"))
    if not any(knob.of_engines for knob in sweep.plan.knobs):
        return Recommendation(None, Message("sweep.circumstance"))
    if not all(knob.of_engines for knob in sweep.plan.knobs):
        return Recommendation(None, Message("sweep.depends"))
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


def best_by_circumstance(sweep: Sweep) -> list[Message]:
    """Where k is varied together with a circumstance, such as concurrency: which k to take under each."""
    if all(knob.of_engines for knob in sweep.plan.knobs) or synthetic(sweep):
        return []
    told = []
    for (label, others), measured in speculation_points(sweep).items():
        index = k_index(sweep, label)
        if index is None:
            continue
        knobs = [knob for number, knob in enumerate(sweep.plan.knobs) if number != index]
        under = ", ".join(f"{knob.key} = {value_text(value)}" for knob, value in zip(knobs, others, strict=True))
        best = best_k([point for _, point in measured])
        told.append(Message("sweep.best_under", {"under": under, "side": label, "best": best.reason}))
    return told


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
    """The best of all sides of all points. Where any other's interval overlaps, or is unknown, that is said."""
    found = [merit for result in results(sweep) for merit in merits(sweep, result)]
    sure = [merit for merit in found if merit.interval is not None]
    if not sure:
        enough = any(point.run is not None and whole_rounds(point.run) >= MIN_ROUNDS for point in sweep.points)
        return Recommendation(
            None, Message("sweep.no_verdict" if enough else "sweep.nothing_known", {"least": MIN_ROUNDS})
        )
    better = _clearly_better(sure)
    if not better:
        return _none_better(sweep, sure)
    best = max(better, key=lambda merit: merit.log)
    others = [merit for merit in found if merit.point.number != best.point.number]
    number, values, label = best.point.number, best.point.values, best.side.label
    params: dict[str, object] = {
        "side": label,
        "values": described(sweep, values),
        "value": best.side.value,
        "metric": Message(f"sweep.unit_{sweep.case.workload.objective}"),
    }
    if not others:
        return Recommendation(values, Message("sweep.only_one", params), number, label)
    rivals = [merit for merit in others if merit.log > best.log or best.overlaps(merit)]
    rival = max(rivals or others, key=lambda merit: merit.log)
    params["rival"] = described(sweep, rival.point.values)
    reason = Message("sweep.best_unsure" if rivals else "sweep.best_clear", params)
    return Recommendation(values, reason, number, label)


def _clearly_better(found: Sequence[Merit]) -> list[Merit]:
    """Than a first side that stays as it is. All of them, where none was compared with such a side."""
    ratios = sum(merit.ratio is not None for merit in found)
    return [merit for merit in found if merit.ratio is None or merit.ratio.interval_of_one_in(ratios)[0] > 1]


def _none_better(sweep: Sweep, found: Sequence[Merit]) -> Recommendation:
    """That first side, or speculation off where it is that."""
    first = sweep.case.sides[0]
    best = max(merit.ratio.value for merit in found if merit.ratio is not None)
    reason = Message("sweep.none_better", {"baseline": first.label, "speed_up": best})
    turned = [side for side in sweep.case.sides if side.label in {merit.side.label for merit in found}]
    plain = isinstance(first.engine, EngineSettings) and not first.engine.speculates
    off = plain and all(isinstance(side.engine, EngineSettings) and side.engine.speculates for side in turned)
    return Recommendation("off" if off else None, reason)
