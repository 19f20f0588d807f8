"""The analysis of a sweep. Nothing here is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import SideRecord
from playground.domain.spec.case import Case
from playground.domain.spec.settings import EngineSettings
from playground.domain.speculation.prediction import PredictionError
from playground.domain.stats.headline import Headline

from .highest_load import HighestLoad, highest_loads
from .nodes import NodeAgreement, agreements, node_of
from .plan import SweepPlan
from .recommendation import Recommendation, best_by_circumstance, recommend
from .record import PointRecord, Sweep
from .result import PointResult
from .schedule import proposed
from .series import Predictions, SpeculationSeries, prediction_errors, predictions, speculation_series


@dataclass(frozen=True)
class SweepAnalysis:
    """Everything that follows from a sweep's records, in the order of the values; each part is computed once.

    A new one is built for each state of the sweep; charts, tables, sentences and documents all read the same one.
    """

    sweep: Sweep
    points: tuple[PointResult, ...]

    @classmethod
    def of(cls, sweep: Sweep) -> SweepAnalysis:
        """Reads every chunk of points that were not read before."""
        return cls(sweep, tuple(record.result() for record in sweep.points))

    @property
    def labels(self) -> list[str]:
        return [side.label for side in self.sweep.case.sides]

    @property
    def listed(self) -> list[PointResult]:
        """The points to list: all of them, or those that a search measured."""
        return [point for point in self.points if point.run is not None or not self.sweep.plan.search]

    @cached_property
    def nodes(self) -> list[NodeAgreement]:
        """How far the machines agree, where there are several."""
        return agreements(self.sweep, self.points)

    @cached_property
    def pooled(self) -> tuple[PointResult, ...]:
        """The points, without results of machines that do not agree with the first: what is concluded from several
        points leaves those out."""
        apart = {node.node for node in self.nodes if not node.pooled}
        return tuple(
            PointResult(point.number, point.values, None, ()) if apart and node_of(point.run) in apart else point
            for point in self.points
        )

    @cached_property
    def series(self) -> list[SpeculationSeries]:
        """The measured gains of speculation, for the theory."""
        return speculation_series(self.sweep.plan, self.pooled)

    @cached_property
    def certain_series(self) -> list[SpeculationSeries]:
        """The same from points with an interval alone, on which predictions are based."""
        return [certain for series in self.series if (certain := series.certain).points]

    @cached_property
    def predictions(self) -> Predictions:
        """The prediction of each point from the other measured k."""
        return predictions(self.certain_series, self.points)

    @cached_property
    def prediction_errors(self) -> list[PredictionError]:
        return prediction_errors(self.certain_series, self.predictions)

    @cached_property
    def recommendation(self) -> Recommendation:
        return recommend(self.sweep, self.pooled, self.series)

    def schedule_measurement(self) -> tuple[SweepPlan, Case]:
        """What measures the schedule that the sweep proposes. Raises InvalidInput where it proposes none."""
        schedule = proposed(self.sweep, self.series)
        if schedule is None:
            raise InvalidInput("sweep.no_schedule", id=self.sweep.id)
        return schedule.measurement(self.sweep)

    @property
    def recommended_side(self) -> SideRecord | None:
        """The side that the recommendation deploys: the one that it names; for "off" the first side; with a
        schedule, one that was measured with another k."""
        best = self.recommendation
        if best.schedule is not None:
            runs = (point.run for point in self.points if point.run is not None)
            side = next(side for run in runs for side in run.sides if side.label == best.side)
            assert isinstance(side.settings, EngineSettings)
            return replace(side, settings=best.schedule.engine(side.settings))
        if best.values == "off":
            return next((point.run.sides[0] for point in self.points if point.run is not None), None)
        run = self.points[best.number].run if best.number is not None else None
        return next((side for side in run.sides if side.label == best.side), None) if run is not None else None

    @cached_property
    def highest_loads(self) -> list[HighestLoad]:
        """How much load each side bears within the limits, where the load is swept."""
        records = [PointRecord(point.number, point.values, point.run) for point in self.pooled]
        return highest_loads(replace(self.sweep, points=records))

    @property
    def headline(self) -> Headline:
        """Of the recommended point."""
        best = self.recommendation
        run = self.points[best.number].run if best.number is not None else None
        return Headline() if run is None else Headline.of(run)

    @cached_property
    def best_by_circumstance(self) -> list[Message]:
        """Which k to choose under each circumstance, where both are varied."""
        return best_by_circumstance(self.sweep, self.series)
