"""How good the sides of a sweep's points are, by the workload's objective: for searches and recommendations."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from playground.domain.stats.ratios import Ratio
from playground.domain.stats.verdicts import LOWER_IS_BETTER

from .knobs import varied_sides
from .record import Sweep
from .result import PointResult, SideResult


@dataclass(frozen=True, slots=True)
class Score:
    """How good one side is at one point, as a log, and the log's 95% interval; None: too few rounds, or a verdict
    that is withheld. `ratio`: the same against the first side, where no knob varies that one."""

    point: PointResult
    side: SideResult
    log: float
    interval: tuple[float, float] | None
    ratio: Ratio | None = None

    def overlaps(self, other: Score) -> bool:
        """Whether the two may be as good as each other."""
        if self.interval is None or other.interval is None:
            return True
        return self.interval[0] <= other.interval[1] and other.interval[0] <= self.interval[1]


def scores(sweep: Sweep, point: PointResult) -> list[Score]:
    """The scores of the sides that the (engines') knobs vary, the best first.

    Where no knob varies the first side, it is what each point is compared with: both are measured in turn, so that
    a drift of the machine from point to point cancels. Not for goodput.
    """
    varied = {label for knob in sweep.plan.knobs for label in varied_sides(sweep.case, knob.name, knob.side)}
    sides = [side for side in point.sides if side.label in varied]
    baseline_stays = sweep.case.sides[0].label not in varied
    # A baseline without any good request has no ratio, and may be the reason for the sweep.
    if baseline_stays and sweep.case.workload.objective != "goodput":
        known = [_paired(point, side) for side in sides]
    else:
        known = [_absolute(sweep, point, side, baseline_stays) for side in sides]
    return sorted((score for score in known if score is not None), key=lambda score: -score.log)


def _paired(point: PointResult, side: SideResult) -> Score | None:
    if side.verdict is None or side.verdict.speed_up is None:
        return None
    ratio = Ratio.of_verdict(side.verdict)
    ends = (log(ratio.interval[0]), log(ratio.interval[1])) if ratio is not None else None
    return Score(point, side, log(side.verdict.speed_up), ends, ratio)


def _absolute(sweep: Sweep, point: PointResult, side: SideResult, baseline_stays: bool) -> Score | None:
    if side.objective.value is None:
        return None
    sign = -1 if sweep.case.workload.objective in LOWER_IS_BETTER else 1
    ends = sorted(sign * log(end) for end in side.objective.interval) if side.objective.interval else None
    ratio = Ratio.of_verdict(side.verdict) if baseline_stays and side.verdict is not None else None
    return Score(point, side, sign * log(side.objective.value), (ends[0], ends[1]) if ends else None, ratio)
