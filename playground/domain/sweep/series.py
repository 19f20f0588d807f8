"""A sweep's points as series for the theory: the gains of speculation over none, and predictions from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from playground.domain.record.run import Run
from playground.domain.spec.change import Value
from playground.domain.spec.settings import EngineSettings
from playground.domain.speculation.prediction import Prediction, PredictionError, predict
from playground.domain.speculation.theory import SpeculationPoint, measured_point

from .plan import SweepPlan
from .result import PointResult

K_NAMES = ("k", "num_speculative_tokens")
# Keys: a point's number and a side's label.
Predictions = dict[tuple[int, str], Prediction]


@dataclass(frozen=True, slots=True)
class SpeculationSeries:
    """One side that speculates, against a first side that does not, at points that differ in its k alone.

    `k_index`: which of the plan's knobs is that k; None where it is not varied. `others` are the other knobs'
    values. `points` has what was measured by the point's number.
    """

    label: str
    k_index: int | None
    others: tuple[Value, ...]
    points: dict[int, SpeculationPoint]

    @property
    def certain(self) -> SpeculationSeries:
        """The series without points that lack an interval: predictions from one or two rounds mean nothing."""
        return replace(
            self, points={number: point for number, point in self.points.items() if point.interval is not None}
        )


def speculation_series(plan: SweepPlan, results: Iterable[PointResult]) -> list[SpeculationSeries]:
    """The series with measured points, in the order of their first points."""
    series: dict[tuple[str, tuple[Value, ...]], SpeculationSeries] = {}
    for result in results:
        if result.run is None or not result.sides or result.run.measurement is None:
            continue
        peak = result.run.measurement.profile.peak
        for label, k in _speculating(result.run).items():
            side, index = result.side(label), _k_index(plan, label)
            if side is None or side.verdict is None:
                continue
            if (point := measured_point(k, peak, side.verdict, side.figures)) is not None:
                others = _others(result.values, index)
                group = series.setdefault((label, others), SpeculationSeries(label, index, others, {}))
                group.points[result.number] = point
    return list(series.values())


def predictions(series: Iterable[SpeculationSeries], results: Sequence[PointResult]) -> Predictions:
    """The prediction from the other measured k, for each point and side whose k is varied.

    A point that is measured itself takes no part in its own prediction.
    """
    predicted: Predictions = {}
    for group in series:
        for result in results if group.k_index is not None else ():
            point = group.points.get(result.number)
            k = point.k if point is not None else result.values[group.k_index or 0]
            known = [other for number, other in group.points.items() if number != result.number]
            if _others(result.values, group.k_index) == group.others and isinstance(k, int) and known:
                [predicted[result.number, group.label]] = predict(known, [k])
    return predicted


def prediction_errors(series: Iterable[SpeculationSeries], predicted: Predictions) -> list[PredictionError]:
    """The errors of predicting each measured k from the others, where there are three or more."""
    return [
        PredictionError(predicted[number, group.label], point.speed_up)
        for group in series
        if group.k_index is not None and len(group.points) > 2
        for number, point in sorted(group.points.items(), key=lambda item: item[1].k)
    ]


def _k_index(plan: SweepPlan, label: str) -> int | None:
    """Which of the knobs is this side's k; None where it is not varied."""
    knobs = enumerate(plan.knobs)
    return next((i for i, knob in knobs if knob.name in K_NAMES and knob.side in (None, label)), None)


def _others(values: Sequence[Value], index: int | None) -> tuple[Value, ...]:
    return tuple(value for i, value in enumerate(values) if i != index)


def _speculating(run: Run) -> dict[str, int]:
    """Label -> k of each side that speculates, if the first side does not."""
    first = run.sides[0].settings
    if not isinstance(first, EngineSettings) or first.speculates is not False:
        return {}
    return {
        side.label: int(side.settings.speculation.model_dump()["num_speculative_tokens"])
        for side in run.sides[1:]
        if isinstance(side.settings, EngineSettings) and side.settings.speculates
    }
