"""From a sweep's runs to its curves and predictions. Nothing here is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median, stdev

from playground.domain.message import Message
from playground.domain.record.metrics import SideFigures, request_figures, side_figures
from playground.domain.record.run import Run, Trial
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.spec.settings import EngineSettings
from playground.domain.speculation.prediction import Prediction, PredictionError, leave_one_out, predict
from playground.domain.speculation.theory import SpeculationPoint, measured_point
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.domain.stats.verdicts import MOST_LEFT_OUT, Verdict, half_width

from .knobs import ACCEPTANCE
from .plan import value_text
from .record import PointRecord, Sweep

K_NAMES = ("k", "num_speculative_tokens")
LATENCIES = ("ttft", "tpot", "e2el")


@dataclass(frozen=True, slots=True)
class OverRounds:
    """A figure's geometric mean over rounds, and from six rounds on its 95% t interval, both of the logs."""

    value: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class SideResult:
    """One side at one point.

    `value` is the workload's objective (ms, tokens/s or requests/s): its geometric mean over rounds, with its 95%
    `interval` from six rounds on. `verdict` compares it with the point's first side; None for that side itself.
    `throughput` is output tokens/s; `medians` has each round's median of TTFT, TPOT and E2EL in ms, by LATENCIES.
    """

    label: str
    figures: SideFigures
    value: float | None
    interval: tuple[float, float] | None
    verdict: Verdict | None
    throughput: OverRounds
    medians: dict[str, OverRounds]


@dataclass(frozen=True, slots=True)
class PointResult:
    """What one point came to. Without sides it was not measured; `problem` says why it failed, if it did."""

    number: int
    values: tuple[Value, ...]
    run_id: str | None
    sides: tuple[SideResult, ...]
    problem: Message | None

    def of(self, label: str) -> SideResult | None:
        return next((side for side in self.sides if side.label == label), None)


def results(sweep: Sweep) -> list[PointResult]:
    """In the order of the values."""
    return [result_of(point) for point in sweep.points]


def shown(sweep: Sweep) -> list[PointResult]:
    """The results that are worth a line: of a search, those of the points that it measured."""
    return [point for point in results(sweep) if point.run_id is not None or not sweep.plan.search]


def result_of(point: PointRecord) -> PointResult:
    """Reads every chunk of the point's run, once it is settled only the first time: not something to do over and
    over while it is measured."""
    known, run = point.result, point.run
    # A point that was cut short gets another run.
    if isinstance(known, PointResult) and run is not None and known.run_id == run.id:
        return known
    found = _result_of(point)
    if point.settled:
        point.result = found
    return found


def _result_of(point: PointRecord) -> PointResult:
    run = point.run
    if run is None:
        return PointResult(point.number, point.values, None, (), None)
    rounds = rounds_of(run)
    verdicts = {verdict.side: verdict for verdict in run_verdicts(run, rounds)}
    rates = rounds_of(run, "throughput")
    limits = run.measurement.limits if run.measurement else None
    sides = []
    for side in run.sides:
        if not side.trials:
            continue
        own = over_rounds([each.values[side.label] for each in rounds])
        sides.append(
            SideResult(
                side.label,
                side_figures(side, limits),
                own.value,
                own.interval,
                verdicts.get(side.label),
                over_rounds([each.values[side.label] for each in rates]),
                _medians(side.trials[: len(rounds)]),
            )
        )
    return PointResult(point.number, point.values, run.id, tuple(sides), run.problem)


def _medians(trials: Sequence[Trial]) -> dict[str, OverRounds]:
    each = [[request_figures(trace) for trace in trial.requests] for trial in trials]
    return {
        name: over_rounds([_median([getattr(one, f"{name}_ms") for one in found]) for found in each])
        for name in LATENCIES
    }


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def over_rounds(values: Sequence[float | None]) -> OverRounds:
    """Of one value a round; what is unknown or not above 0 has no log and is left out. Of more than one such round
    in ten nothing: they are the bad ones."""
    logs = [log(value) for value in values if value is not None and value > 0]
    if not logs or len(values) - len(logs) > MOST_LEFT_OUT * len(values):
        return OverRounds(None, None)
    mean = fmean(logs)
    if len(logs) < MIN_ROUNDS:
        return OverRounds(exp(mean), None)
    half = half_width(stdev(logs), len(logs))
    return OverRounds(exp(mean), (exp(mean - half), exp(mean + half)))


def pareto_front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of (latency, throughput) those that no other one beats in both, by rising latency."""
    front: list[tuple[float, float]] = []
    for latency, rate in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or rate > front[-1][1]:
            front.append((latency, rate))
    return front


def k_index(sweep: Sweep, label: str) -> int | None:
    """Which of the knobs is this side's k; None where it is not varied."""
    knobs = enumerate(sweep.plan.knobs)
    return next((i for i, knob in knobs if knob.name in K_NAMES and knob.side in (None, label)), None)


def speculation_points(sweep: Sweep) -> dict[tuple[str, tuple[Value, ...]], list[tuple[int, SpeculationPoint]]]:
    """Points of each side that speculates against a first side that does not, grouped by all knobs but its k.

    The key is the side's label and the other knobs' values; each entry is the point's number and what it measured.
    """
    found: dict[tuple[str, tuple[Value, ...]], list[tuple[int, SpeculationPoint]]] = {}
    for record, result in zip(sweep.points, results(sweep), strict=True):
        if record.run is None or not result.sides or record.run.measurement is None:
            continue
        for label, k in _speculating(record.run).items():
            side = result.of(label)
            if side is None or side.verdict is None:
                continue
            peak = record.run.measurement.profile.peak
            if (point := measured_point(k, peak, side.verdict, side.figures)) is not None:
                others = _others(record.values, k_index(sweep, label))
                found.setdefault((label, others), []).append((record.number, point))
    return found


def sure_points(sweep: Sweep) -> dict[tuple[str, tuple[Value, ...]], list[tuple[int, SpeculationPoint]]]:
    """Of those the ones with an interval: what theory makes of one or two rounds is nonsense."""
    groups = {
        key: [(number, point) for number, point in measured if point.interval is not None]
        for key, measured in speculation_points(sweep).items()
    }
    return {key: measured for key, measured in groups.items() if measured}


def _others(values: Sequence[Value], index: int | None) -> tuple[Value, ...]:
    return tuple(value for i, value in enumerate(values) if i != index)


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
    found: dict[tuple[int, str], Prediction] = {}
    for (label, others), measured in sure_points(sweep).items():
        index = k_index(sweep, label)
        for record in sweep.points if index is not None else ():
            k, rest = record.values[index or 0], _others(record.values, index)
            known = [point for number, point in measured if number != record.number]
            if rest == others and isinstance(k, int) and known:
                [found[record.number, label]] = predict(known, [k])
    return found


def prediction_errors(sweep: Sweep) -> list[PredictionError]:
    """Each measured k predicted from the others, where there are three or more."""
    groups = sure_points(sweep).values()
    return [error for group in groups for error in leave_one_out(point for _, point in group)]


def synthetic(sweep: Sweep) -> bool:
    """Whether what is accepted was prescribed: the speed is real, the text means nothing."""
    if any(knob.name == ACCEPTANCE or knob.name.startswith("synthetic_") for knob in sweep.plan.knobs):
        return True
    return any(side.engine.synthetic for side in sweep.case.sides)


def described(sweep: Sweep, values: Sequence[Value]) -> str:
    """The knobs with these values, as they are typed."""
    pairs = zip(sweep.plan.knobs, values, strict=True)
    return ", ".join(f"{knob.key} = {value_text(value)}" for knob, value in pairs)
