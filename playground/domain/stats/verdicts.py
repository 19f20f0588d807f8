"""Rounds -> speed-up, interval, verdict.

The unit of evidence is the round: every side once under the same workload, the order alternating A B B A.
Requests inside a trial share its noise (clock, temperature, neighbours), so they never count as evidence of
their own.

The estimator is the paired t interval on the rounds' log ratios. Why this one: within a round only the drift
between two neighbouring trials is left, with opposite signs in consecutive rounds, so that a linear drift cancels
over each A B B A and a random walk leaves independent steps. Compared by simulation with the mean of A B B A
blocks (covers as well, but its interval is half as wide again at 6 rounds, since only 3 values are left) and with
a regression on the order (a fifth narrower only under steep drift, and it covers less when rounds stop on the
width: 92 instead of 93%). A drift makes the paired interval too wide, never too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from statistics import fmean, stdev
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.measurement import MIN_ROUNDS, TARGET_WIDTH
from playground.domain.spec.workload import Objective

from .intervals import further_rounds, half_width, ratio_interval
from .reasons import Reason, own_spread, ratio_moves, too_few, trend, unclear

Outcome = Literal["faster", "slower", "no clear difference"]
# One round: side -> the metric's value in that round's trial, None where unknown.
RoundValues = Mapping[str, float | None]

LOWER_IS_BETTER: frozenset[Objective] = frozenset({"tpot", "ttft"})
# The share of rounds that may be missing before a verdict is one on the rest only.
MOST_LEFT_OUT = 0.1


@dataclass(frozen=True, slots=True)
class Verdict:
    """How `side` compares with `baseline` by one metric.

    `speed_up` and `interval` (95%) are ratios, above 1 where the side is better; `rounds` counts those in which
    both values were known; `needed_rounds` is how many further rounds would settle an unclear verdict (0: it is
    settled, None: unreasonably many, or unknown). `reason` is what a reader must know besides, if anything.
    """

    side: str
    baseline: str
    metric: Objective
    verdict: Outcome
    speed_up: float | None
    interval: tuple[float, float] | None
    rounds: int
    reason: Reason | None = None
    needed_rounds: int | None = None

    @property
    def relative_width(self) -> float | None:
        """(high - low) / speed-up: 0.1 is about plus or minus 5%. None without an interval."""
        if self.interval is None or self.speed_up is None:
            return None
        return (self.interval[1] - self.interval[0]) / self.speed_up


def compare(
    rounds: Sequence[RoundValues],
    side: str,
    baseline: str,
    metric: Objective,
    target_relative_width: float = TARGET_WIDTH,
) -> Verdict:
    """The verdict on `side` against `baseline`.

    Speed-up = geometric mean over rounds of the ratio in each round (of the baseline's value to the side's where
    lower is better). A value that is unknown or not finite leaves its round out, and the reason says so: what
    is left out may not be like the rest, so beyond one round in ten there is no verdict. A goodput of 0 is known,
    but has no ratio: a side that never has any is slower, else there is no verdict. The target width is used for
    `needed_rounds` only.
    """
    if metric == "goodput" and (nothing := _without_goodput(rounds, side, baseline)) is not None:
        outcome, reason = nothing
        return Verdict(side, baseline, metric, outcome, None, None, len(rounds), reason)
    side_logs, base_logs = _paired_logs(rounds, side, baseline, metric)
    ratios = [log_side - log_base for log_side, log_base in zip(side_logs, base_logs, strict=True)]
    count = len(ratios)
    if count < MIN_ROUNDS:
        reason = too_few(len(rounds), count)
        speed_up = exp(fmean(ratios)) if ratios else None
        needed = MIN_ROUNDS - count
        return Verdict(side, baseline, metric, "no clear difference", speed_up, None, count, reason, needed)
    mean, spread = fmean(ratios), stdev(ratios)
    half = half_width(spread, count)
    outcome, reason, further = _judge(ratios, {side: side_logs, baseline: base_logs}, target_relative_width)
    if count < len(rounds):
        outcome = outcome if len(rounds) - count <= MOST_LEFT_OUT * len(rounds) else "no clear difference"
        reason = Reason("left_out", {"left": len(rounds) - count, "rounds": len(rounds)})
    return Verdict(side, baseline, metric, outcome, exp(mean), ratio_interval(mean, half), count, reason, further)


def _without_goodput(
    rounds: Sequence[RoundValues], side: str, baseline: str
) -> tuple[Outcome, Reason | None] | None:
    """The outcome where a side kept to the limits in no request of a round; None if that never happened."""
    zeros = {name: sum(values.get(name) == 0 for values in rounds) for name in (side, baseline)}
    worst = max(zeros, key=lambda name: zeros[name])
    if not zeros[worst]:
        return None
    reason = Reason("no_good_requests", {"side": worst, "zeros": zeros[worst], "rounds": len(rounds)})
    if len(rounds) < MIN_ROUNDS or zeros[worst] < len(rounds) or min(zeros.values()):
        return "no clear difference", reason
    return ("slower" if worst == side else "faster"), reason


def _judge(
    ratios: Sequence[float], logs: Mapping[str, Sequence[float]], target_relative_width: float
) -> tuple[Outcome, Reason | None, int | None]:
    """Verdict, reason and further rounds; `logs` holds those of the side and of its baseline, in this order."""
    mean, spread = fmean(ratios), stdev(ratios)
    half = half_width(spread, len(ratios))
    moves = ratio_moves(ratios, mean, *logs)
    if moves is not None:
        # There is no one ratio for the whole run, which the interval assumes.
        return "no clear difference", moves, None
    if abs(mean) > half:
        return ("faster" if mean > 0 else "slower"), trend(logs) or own_spread(logs, mean), None
    needed = further_rounds(mean, spread, len(ratios), target_relative_width)
    return "no clear difference", trend(logs) or unclear(needed, mean, half), needed


def narrow_enough(verdict: Verdict, target_relative_width: float) -> bool:
    """The stopping rule, applied after every round. It looks at the interval's width, never at its sign.

    Stopping as soon as the interval excludes 1 would claim a difference where there is none about one time in six
    within 20 rounds. Stopping on the width costs a little, since it stops sooner where the spread looks small by
    luck: by the tests' simulations 93% coverage instead of 95% where about 10 rounds are needed, and
    more elsewhere. Only an even number of rounds may stop: a drift cancels in whole A B B A.
    """
    width = verdict.relative_width
    return width is not None and verdict.rounds % 2 == 0 and width <= target_relative_width


def _paired_logs(
    rounds: Sequence[RoundValues], side: str, baseline: str, metric: Objective
) -> tuple[list[float], list[float]]:
    """Both sides' logs over the rounds that have both, signed so that more is better."""
    sign = -1 if metric in LOWER_IS_BETTER else 1
    side_logs: list[float] = []
    base_logs: list[float] = []
    for values in rounds:
        value, base = values.get(side), values.get(baseline)
        if value is None or base is None or not (isfinite(value) and isfinite(base)) or min(value, base) <= 0:
            continue
        side_logs.append(sign * log(value))
        base_logs.append(sign * log(base))
    return side_logs, base_logs


def headline(verdict: Verdict, prompts: Sequence[int], source: str | None = None) -> Message:
    """The one sentence that a comparison ends with. `prompts`: how many each trial sent; `source`: the set or file
    that they came from, if it has a name."""
    least, most = min(prompts, default=0), max(prompts, default=0)
    sent = Message("verdict.prompts", {"count": most})
    if least != most:
        sent = Message("verdict.prompts_range", {"least": least, "most": most})
    elif most == 1:
        sent = Message("verdict.one_prompt")
    if source is not None:
        sent = Message("verdict.prompts_of", {"prompts": sent, "source": source})
    params: dict[str, object] = {
        "side": verdict.side,
        "baseline": verdict.baseline,
        "metric": Message(f"verdict.by_{verdict.metric}"),
        "rounds": verdict.rounds,
        "prompts": sent,
    }
    if verdict.interval is None or verdict.speed_up is None:
        return Message("verdict.none_yet", params)
    params |= {"speed_up": verdict.speed_up, "low": verdict.interval[0], "high": verdict.interval[1]}
    if verdict.verdict == "no clear difference":
        return Message("verdict.unclear", params)
    return Message("verdict.faster" if verdict.verdict == "faster" else "verdict.slower", params)
