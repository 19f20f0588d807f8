"""Recommends the setting to deploy, from what a sweep measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.spec.settings import EngineSettings
from playground.domain.speculation.theory import BestK, best_k
from playground.domain.stats.rounds import whole_rounds

from .plan import value_text
from .record import Sweep
from .result import PointResult
from .schedule import Schedule, proposed
from .score import Score, scores
from .series import SpeculationSeries


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The values to deploy; "off": switch speculation off; None: nothing to recommend but a schedule, if there is
    one. `number`: its point."""

    values: tuple[Value, ...] | Literal["off"] | None
    reason: Message
    number: int | None = None
    side: str | None = None
    schedule: Schedule | None = None


def recommend(sweep: Sweep, results: Sequence[PointResult], series: Sequence[SpeculationSeries]) -> Recommendation:
    """The best measured values, by the workload's objective."""
    if (schedule := proposed(sweep, series)) is not None:
        return Recommendation(None, schedule.message, side=schedule.side, schedule=schedule)
    if sweep.synthetic:
        return Recommendation(None, Message("sweep.synthetic"))
    if not any(knob.of_engines for knob in sweep.plan.knobs):
        return Recommendation(None, Message("sweep.circumstance"))
    if not all(knob.of_engines for knob in sweep.plan.knobs):
        return Recommendation(None, Message("sweep.depends"))
    return _best_k(sweep, series) or _best_point(sweep, results)


def best_by_circumstance(sweep: Sweep, series: Sequence[SpeculationSeries]) -> list[Message]:
    """Which k to choose under each circumstance, such as concurrency, where both are varied."""
    if all(knob.of_engines for knob in sweep.plan.knobs) or sweep.synthetic:
        return []
    sentences = []
    for group in series:
        if group.k_index is None:
            continue
        knobs = [knob for index, knob in enumerate(sweep.plan.knobs) if index != group.k_index]
        pairs = zip(knobs, group.others, strict=True)
        under = ", ".join(f"{knob.key} = {value_text(value)}" for knob, value in pairs)
        best = best_k(list(group.points.values()))
        sentences.append(Message("sweep.best_under", {"under": under, "side": group.label, "best": best.reason}))
    return sentences


def _best_k(sweep: Sweep, series: Sequence[SpeculationSeries]) -> Recommendation | None:
    """The k to choose, or none, where k is varied against no speculation. Of several sides the fastest decides."""
    if len(sweep.plan.knobs) > 1:
        return None
    chosen: list[tuple[float, str, BestK, int | None]] = []
    for group in series:
        if group.k_index is None:
            continue
        best = best_k(list(group.points.values()))
        numbers = ((number, point.speed_up) for number, point in group.points.items() if point.k == best.k)
        number, speed_up = next(numbers, (None, 1.0))
        chosen.append((speed_up, group.label, best, number))
    if not chosen:
        return None
    _, label, best, number = max(chosen, key=lambda item: item[0])
    if isinstance(best.k, int):
        return Recommendation((best.k,), best.reason, number, label)
    return Recommendation(best.k, best.reason, None, label)


def _best_point(sweep: Sweep, results: Sequence[PointResult]) -> Recommendation:
    """The best of all sides of all points. The reason says where another's interval overlaps or is unknown."""
    all_scores = [score for result in results for score in scores(sweep, result)]
    certain = [score for score in all_scores if score.interval is not None]
    if not certain:
        enough = any(result.run is not None and whole_rounds(result.run) >= MIN_ROUNDS for result in results)
        return Recommendation(
            None, Message("sweep.no_verdict" if enough else "sweep.nothing_known", {"least": MIN_ROUNDS})
        )
    better = _clearly_better(certain)
    if not better:
        return _none_better(sweep, certain)
    best = max(better, key=lambda score: score.log)
    others = [score for score in all_scores if score.point.number != best.point.number]
    number, values, label = best.point.number, best.point.values, best.side.label
    params: dict[str, object] = {
        "side": label,
        "values": sweep.plan.described(values),
        "value": best.side.objective.value,
        "metric": Message(f"sweep.unit_{sweep.case.workload.objective}"),
    }
    if not others:
        return Recommendation(values, Message("sweep.only_one", params), number, label)
    rivals = [score for score in others if score.log > best.log or best.overlaps(score)]
    rival = max(rivals or others, key=lambda score: score.log)
    params["rival"] = sweep.plan.described(rival.point.values)
    reason = Message("sweep.best_unsure" if rivals else "sweep.best_clear", params)
    return Recommendation(values, reason, number, label)


def _clearly_better(certain: Sequence[Score]) -> list[Score]:
    """The scores above that of a first side that no knob varies; all scores, where there is no such side."""
    ratios = sum(score.ratio is not None for score in certain)
    return [score for score in certain if score.ratio is None or score.ratio.interval_of_one_in(ratios)[0] > 1]


def _none_better(sweep: Sweep, certain: Sequence[Score]) -> Recommendation:
    """Recommend that first side, or speculation off where that is its setting."""
    first = sweep.case.sides[0]
    best = max(score.ratio.value for score in certain if score.ratio is not None)
    reason = Message("sweep.none_better", {"baseline": first.label, "speed_up": best})
    varied = {score.side.label for score in certain}
    engines = [side.engine for side in sweep.case.sides if side.label in varied]
    plain = isinstance(first.engine, EngineSettings) and first.engine.speculates is False
    off = plain and all(isinstance(engine, EngineSettings) and engine.speculates for engine in engines)
    return Recommendation("off" if off else None, reason)
