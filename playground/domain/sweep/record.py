"""What the history keeps of a sweep and of its points."""

from __future__ import annotations

from dataclasses import dataclass, field

from playground.domain.message import Message
from playground.domain.record.run import Run, Status
from playground.domain.spec.case import Case
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.stats.rounds import whole_rounds

from .plan import Point, SweepPlan, points_of


@dataclass(slots=True)
class PointRecord:
    """What the history keeps of a point: its run, once there is one."""

    number: int
    values: tuple[Value, ...]
    run: Run | None = None
    # What `sweep_results.result_of` made of a settled run: every chunk of it is read once.
    result: object = field(default=None, repr=False, compare=False)

    @property
    def settled(self) -> bool:
        """Nothing more to do: it was measured, or it failed, which is a result too."""
        return self.run is not None and self.run.status in ("done", "failed")


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
    _planned: list[Point] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def planned(self) -> list[Point]:
        """Every combination of the values as a comparison, built once. Raises InvalidInput for a knob or value
        that the case does not allow."""
        if self._planned is None:
            self._planned = points_of(self.plan, self.case)
        return self._planned

    @property
    def asked(self) -> str:
        """In a few words: the knobs and how many values each has."""
        return " x ".join(f"{knob.key} ({len(knob.values)})" for knob in self.plan.knobs)

    @property
    def left(self) -> int:
        """How many measurements are still to come; of a search under way at most."""
        if self.plan.search and self.status == "done":
            return 0
        done = sum(map(self.measured, self.points)) + sum(map(self.looked_at_again, self.points))
        return self.plan.most_points - done

    def measured(self, point: PointRecord) -> bool:
        """Whether the point is settled, and had the time that it needed."""
        return point.settled and not self.cut_short(point)

    def cut_short(self, point: PointRecord) -> bool:
        """Whether the sweep's time left the point fewer rounds than an interval needs."""
        run = point.run
        if run is None or run.measurement is None or run.status != "done":
            return False
        return run.measurement.budget_s < self.case.measurement.budget_s and whole_rounds(run) < MIN_ROUNDS

    def looked_at_again(self, point: PointRecord) -> bool:
        """Whether a search measured it for a second time: not only as long as it takes to know where to go on."""
        run = point.run
        if run is None or run.measurement is None or run.status != "done":
            return False
        return self.plan.search and run.measurement.max_rounds > MIN_ROUNDS
