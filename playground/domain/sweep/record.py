"""What the history keeps of a sweep and of its points."""

from __future__ import annotations

from dataclasses import dataclass, field

from playground.domain.message import Message
from playground.domain.record.run import Run, Status
from playground.domain.spec.case import Case
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.stats.rounds import whole_rounds

from .knobs import ACCEPTANCE
from .plan import Point, SweepPlan, points_of
from .result import PointResult


@dataclass(slots=True)
class PointRecord:
    """What the history keeps of a point: its run, once there is one."""

    number: int
    values: tuple[Value, ...]
    run: Run | None = None
    _result: PointResult | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do: the point was measured, or it failed, which is a result too."""
        return self.run is not None and self.run.status in ("done", "failed")

    def recorded(self, result: PointResult) -> None:
        """Take the result as it was recorded, where the run's requests were not kept."""
        self._result = result

    def result(self) -> PointResult:
        """The point's result. This reads every chunk of its run: once for a settled point, each time for one under
        way."""
        known, run = self._result, self.run
        # A point that was cut short gets another run.
        if known is not None and run is not None and known.run_id == run.id:
            return known
        result = PointResult.of(self.number, self.values, run)
        if self.settled:
            self._result = result
        return result


@dataclass(slots=True)
class Sweep:
    """What the history keeps of a sweep: what it starts from (`case`), and its points, in the values' order."""

    id: str
    created_at: str
    plan: SweepPlan
    case: Case
    points: list[PointRecord] = field(default_factory=list)
    preset: str | None = None
    status: Status = "running"
    problem: Message | None = None
    anchors: list[Run] = field(default_factory=list)
    """The first point again, once on each other machine that takes points."""
    _planned: list[Point] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def planned(self) -> list[Point]:
        """Every combination of the values as a comparison, built once. Raises InvalidInput for a knob or value
        that the case does not allow."""
        if self._planned is None:
            self._planned = points_of(self.plan, self.case)
        return self._planned

    @property
    def title(self) -> str:
        """A short title: the knobs and how many values each has."""
        return " x ".join(f"{knob.key} ({len(knob.values)})" for knob in self.plan.knobs)

    @property
    def synthetic(self) -> bool:
        """Whether what is accepted was prescribed: the speed is real, the text means nothing."""
        if any(knob.name == ACCEPTANCE or knob.name.startswith("synthetic_") for knob in self.plan.knobs):
            return True
        return any(side.engine.synthetic for side in self.case.sides)

    @property
    def remaining(self) -> int:
        """How many measurements are still to come; of a search under way at most."""
        if self.plan.search and self.status == "done":
            return 0
        done = sum(map(self.measured, self.points)) + sum(map(self.repeated, self.points))
        return self.plan.most_points - done

    def is_anchor(self, run: Run) -> bool:
        """Whether the run measured the first point."""
        case = self.planned[0].case
        engines = [side.engine for side in case.sides]
        return run.workload == case.workload and [side.settings for side in run.sides] == engines

    def measured(self, point: PointRecord) -> bool:
        """Whether the point is settled, and had the time that it needed."""
        return point.settled and not self.cut_short(point)

    def cut_short(self, point: PointRecord) -> bool:
        """Whether the sweep's time left the point fewer rounds than an interval needs."""
        run = point.run
        if run is None or run.measurement is None or run.status != "done":
            return False
        return run.measurement.budget_s < self.case.measurement.budget_s and whole_rounds(run) < MIN_ROUNDS

    def repeated(self, point: PointRecord) -> bool:
        """Whether a search measured it for a second time, with more rounds than at first."""
        run = point.run
        if run is None or run.measurement is None or run.status != "done":
            return False
        return self.plan.search and run.measurement.max_rounds > MIN_ROUNDS
