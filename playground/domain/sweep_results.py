"""From a sweep's runs to its curves, predictions, and the setting to deploy. Nothing here is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, stdev
from typing import Literal

from .changes import Value
from .knobs import ACCEPTANCE
from .measurement import MIN_ROUNDS
from .metrics import SideFigures, side_figures
from .prediction import Prediction, PredictionError, leave_one_out, predict
from .records import Problem, Run
from .rounds import rounds_of, run_verdicts
from .settings import EngineSettings
from .speculation import BestK, SpeculationPoint, best_k, measured_point
from .statistics import LOWER_IS_BETTER, Verdict, half_width
from .sweep import PointRecord, Sweep

K_NAMES = ("k", "num_speculative_tokens")


@dataclass(frozen=True, slots=True)
class SideResult:
    """One side at one point.

    `value` is the workload's objective (ms, tokens/s or requests/s): its geometric mean over rounds, with its 95%
    `interval` from six rounds on. `verdict` compares it with the point's first side; None for that side itself.
    """

    label: str
    figures: SideFigures
    value: float | None
    interval: tuple[float, float] | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class PointResult:
    """What one point came to. Without sides it was not measured; `problem` says why it failed, if it did."""

    number: int
    values: tuple[Value, ...]
    run_id: str | None
    sides: tuple[SideResult, ...]
    problem: Problem | None

    def of(self, label: str) -> SideResult | None:
        return next((side for side in self.sides if side.label == label), None)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The values to deploy; "off": switch speculation off; None: nothing to recommend. `number`: its point."""

    values: tuple[Value, ...] | Literal["off"] | None
    reason: Problem
    number: int | None = None
    side: str | None = None


def results(sweep: Sweep) -> list[PointResult]:
    """In the order of the values."""
    return [result_of(point) for point in sweep.points]


def result_of(point: PointRecord) -> PointResult:
    """Reads every chunk of the point's run: not something to do over and over while another one is measured."""
    run = point.run
    if run is None:
        return PointResult(point.number, point.values, None, (), None)
    rounds = rounds_of(run)
    verdicts = {verdict.side: verdict for verdict in run_verdicts(run, rounds)}
    limits = run.measurement.limits if run.measurement else None
    sides = tuple(
        SideResult(
            side.label,
            side_figures(side, limits),
            *_geometric([each.values[side.label] for each in rounds]),
            verdicts.get(side.label),
        )
        for side in run.sides
        if side.trials
    )
    return PointResult(point.number, point.values, run.id, sides, run.problem)


def _geometric(values: Sequence[float | None]) -> tuple[float | None, tuple[float, float] | None]:
    """Mean over rounds and its 95% t interval, both of the logs."""
    logs = [log(value) for value in values if value is not None and value > 0]
    if not logs:
        return None, None
    mean = fmean(logs)
    if len(logs) < MIN_ROUNDS:
        return exp(mean), None
    half = half_width(stdev(logs), len(logs))
    return exp(mean), (exp(mean - half), exp(mean + half))


def speculation_points(sweep: Sweep) -> dict[tuple[str, tuple[Value, ...]], list[tuple[int, SpeculationPoint]]]:
    """Points of each side that speculates against a first side that does not, grouped by all knobs but k.

    The key is the side's label and the other knobs' values; each entry is the point's number and what it measured.
    """
    found: dict[tuple[str, tuple[Value, ...]], list[tuple[int, SpeculationPoint]]] = {}
    others = [index for index, knob in enumerate(sweep.plan.knobs) if knob.name not in K_NAMES]
    for record, result in zip(sweep.points, results(sweep), strict=True):
        if record.run is None or not result.sides or record.run.measurement is None:
            continue
        for label, k in _speculating(record.run).items():
            side = result.of(label)
            if side is None or side.verdict is None:
                continue
            peak = record.run.measurement.profile.peak
            if (point := measured_point(k, peak, side.verdict, side.figures)) is not None:
                key = (label, tuple(record.values[index] for index in others))
                found.setdefault(key, []).append((record.number, point))
    return found


def _speculating(run: Run) -> dict[str, int]:
    """Label -> k of each side that speculates, if the first side does not."""
    first = run.sides[0].settings
    if not isinstance(first, EngineSettings) or first.speculates:
        return {}
    return {
        side.label: int(side.settings.speculation.model_dump()["num_speculative_tokens"])
        for side in run.sides[1:]
        if isinstance(side.settings, EngineSettings) and side.settings.speculates
    }


def predictions(sweep: Sweep) -> dict[tuple[int, str], Prediction]:
    """For each point and side: what the other measured k say of it. Point number and label -> prediction.

    A point that is measured itself takes no part in its own prediction.
    """
    index = next((i for i, knob in enumerate(sweep.plan.knobs) if knob.name in K_NAMES), None)
    if index is None:
        return {}
    found: dict[tuple[int, str], Prediction] = {}
    for (label, others), measured in speculation_points(sweep).items():
        for record in sweep.points:
            k = record.values[index]
            rest = tuple(value for i, value in enumerate(record.values) if i != index)
            known = [point for number, point in measured if number != record.number]
            if rest == others and isinstance(k, int) and known:
                [found[record.number, label]] = predict(known, [k])
    return found


def prediction_errors(sweep: Sweep) -> list[PredictionError]:
    """Each measured k predicted from the others, where there are three or more."""
    groups = speculation_points(sweep).values()
    return [error for group in groups for error in leave_one_out(point for _, point in group)]


def synthetic(sweep: Sweep) -> bool:
    """Whether what is accepted was prescribed: the speed is real, the text means nothing."""
    if any(knob.name == ACCEPTANCE or knob.name.startswith("synthetic_") for knob in sweep.plan.knobs):
        return True
    own = [side.engine for side in sweep.case.sides if isinstance(side.engine, EngineSettings)]
    return any(one.speculation.model_dump().get("rejection_sample_method") == "synthetic" for one in own)


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


def described(sweep: Sweep, values: Sequence[Value]) -> str:
    """The knobs with these values, as they are typed."""
    pairs = zip(sweep.plan.knobs, values, strict=True)
    return ", ".join(f"{knob.key} = {'default' if value is None else value}" for knob, value in pairs)
