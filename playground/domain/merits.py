"""How good the points of a sweep are, by the workload's objective: what a search and a recommendation go by."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from .knobs import turned_sides
from .statistics import LOWER_IS_BETTER
from .sweep import Sweep
from .sweep_results import PointResult, SideResult


@dataclass(frozen=True, slots=True)
class Merit:
    """How good one side is at one point, as a log, and the log's 95% interval; None: too few rounds."""

    point: PointResult
    side: SideResult
    log: float
    interval: tuple[float, float] | None

    def overlaps(self, other: Merit) -> bool:
        """Whether the two may be as good as each other."""
        if self.interval is None or other.interval is None:
            return True
        return self.interval[0] <= other.interval[1] and other.interval[0] <= self.interval[1]


def merits(sweep: Sweep, point: PointResult) -> list[Merit]:
    """Of the sides that the (engines') knobs turn, the best first.

    Where the first side stays as it is, it is what each point is compared with: both are measured in turn, so that
    a drift of the machine from point to point cancels.
    """
    turned = {label for knob in sweep.plan.knobs for label in turned_sides(sweep.case, knob.name, knob.side)}
    paired = sweep.case.sides[0].label not in turned
    sign = -1 if sweep.case.workload.objective in LOWER_IS_BETTER and not paired else 1
    found = []
    for side in point.sides:
        value, interval = side.value, side.interval
        if paired:
            value, interval = (side.verdict.speed_up, side.verdict.interval) if side.verdict else (None, None)
        if side.label not in turned or value is None:
            continue
        ends = sorted(sign * log(end) for end in interval) if interval else None
        found.append(Merit(point, side, sign * log(value), (ends[0], ends[1]) if ends else None))
    return sorted(found, key=lambda merit: -merit.log)
