"""How good the points of a sweep are, by the workload's objective: what a search and a recommendation go by."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from playground.domain.stats.ratios import Ratio
from playground.domain.stats.verdicts import LOWER_IS_BETTER

from .analysis import PointResult, SideResult
from .knobs import turned_sides
from .record import Sweep


@dataclass(frozen=True, slots=True)
class Merit:
    """How good one side is at one point, as a log, and the log's 95% interval; None: too few rounds, or a verdict
    that is withheld. `ratio`: the same against the first side, where that one stays as it is."""

    point: PointResult
    side: SideResult
    log: float
    interval: tuple[float, float] | None
    ratio: Ratio | None = None

    def overlaps(self, other: Merit) -> bool:
        """Whether the two may be as good as each other."""
        if self.interval is None or other.interval is None:
            return True
        return self.interval[0] <= other.interval[1] and other.interval[0] <= self.interval[1]


def merits(sweep: Sweep, point: PointResult) -> list[Merit]:
    """Of the sides that the (engines') knobs turn, the best first.

    Where the first side stays as it is, it is what each point is compared with: both are measured in turn, so that
    a drift of the machine from point to point cancels. Not for goodput.
    """
    turned = {label for knob in sweep.plan.knobs for label in turned_sides(sweep.case, knob.name, knob.side)}
    sides = [side for side in point.sides if side.label in turned]
    stays = sweep.case.sides[0].label not in turned
    # A baseline without any good request has no ratio, and may be why somebody looks for a better setting.
    if stays and sweep.case.workload.objective != "goodput":
        found = [merit for side in sides if (merit := _paired(point, side)) is not None]
    else:
        found = [merit for side in sides if (merit := _by_itself(sweep, point, side, stays)) is not None]
    return sorted(found, key=lambda merit: -merit.log)


def _paired(point: PointResult, side: SideResult) -> Merit | None:
    if side.verdict is None or side.verdict.speed_up is None:
        return None
    ratio = Ratio.of_verdict(side.verdict)
    ends = (log(ratio.interval[0]), log(ratio.interval[1])) if ratio is not None else None
    return Merit(point, side, log(side.verdict.speed_up), ends, ratio)


def _by_itself(sweep: Sweep, point: PointResult, side: SideResult, baseline_stays: bool) -> Merit | None:
    if side.value is None:
        return None
    sign = -1 if sweep.case.workload.objective in LOWER_IS_BETTER else 1
    ends = sorted(sign * log(end) for end in side.interval) if side.interval else None
    ratio = Ratio.of_verdict(side.verdict) if baseline_stays and side.verdict is not None else None
    return Merit(point, side, sign * log(side.value), (ends[0], ends[1]) if ends else None, ratio)
