"""Reasons: what a reader must know beside a verdict. A test for trends finds some of them.

All values are logs of one figure a round, larger where it is better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import exp, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.measurement import MIN_ROUNDS

from .intervals import MAX_FURTHER_ROUNDS

# What a reader must know besides a verdict.
ReasonKind = Literal[
    "few_rounds",
    "unknown_values",
    "left_out",
    "no_good_requests",
    "ratio_moves",
    "drifts_up",
    "drifts_down",
    "own_spread",
    "more_rounds",
    "too_noisy",
    "no_difference_above",
]
# A trend must be this unlikely by chance: two sides and their ratio are looked at in every comparison.
TREND_P = 0.01


@dataclass(frozen=True, slots=True)
class Reason:
    """What a reader must know besides a verdict, with the parameters of its sentence."""

    kind: ReasonKind
    params: dict[str, object] = field(default_factory=dict)

    @property
    def message(self) -> Message:
        return Message(f"verdict.{self.kind}", self.params)


def trend_p(values: Sequence[float]) -> float:
    """Two-sided p-value of the Mann-Kendall test for a monotone trend (Mann 1945, Kendall 1975).

    Normal approximation with continuity correction. Ties count as no evidence, which errs towards no trend. From
    6 values on, a perfectly monotone series is just below 0.01.
    """
    count = len(values)
    balance = abs(sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2)))
    if balance <= 1:
        return 1.0
    z = (balance - 1) / sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return 2 * NormalDist().cdf(-z)


def _change(values: Sequence[float]) -> float:
    """The change from the first half of the rounds to the second, in the values' unit."""
    half = len(values) // 2
    return fmean(values[-half:]) - fmean(values[:half])


def _percent(log_ratio: float) -> float:
    return 100 * (exp(log_ratio) - 1)


def too_few(rounds: int, known: int) -> Reason:
    """There are too few rounds for an interval, or too few in which both values are known."""
    if known < rounds:
        return Reason("unknown_values", {"known": known, "rounds": rounds, "least": MIN_ROUNDS})
    return Reason("few_rounds", {"rounds": rounds, "least": MIN_ROUNDS})


def ratio_moves(ratios: Sequence[float], mean: float, side: str, baseline: str) -> Reason | None:
    """The ratio itself has a trend that is larger than the difference found: an average of it means little."""
    change = _change(ratios)
    if abs(change) <= abs(mean) or trend_p(ratios) >= TREND_P:
        return None
    return Reason(
        "ratio_moves",
        {"side": side, "baseline": baseline, "change": abs(_percent(change)), "difference": abs(_percent(mean))},
    )


def trend(logs: Mapping[str, Sequence[float]]) -> Reason | None:
    """A side's own rounds have a trend. Of several, the reason names the one with the largest change."""
    drifting = {name: _change(values) for name, values in logs.items() if trend_p(values) < TREND_P}
    if not drifting:
        return None
    side = max(drifting, key=lambda name: abs(drifting[name]))
    kind: ReasonKind = "drifts_up" if drifting[side] > 0 else "drifts_down"
    return Reason(kind, {"side": side, "change": abs(_percent(drifting[side]))})


def own_spread(logs: Mapping[str, Sequence[float]], mean: float) -> Reason | None:
    """A side's own rounds (their standard deviation) disagree more than the sides do."""
    side = max(logs, key=lambda name: stdev(logs[name]))
    spread = stdev(logs[side])
    if spread <= abs(mean):
        return None
    return Reason(
        "own_spread",
        {"side": side, "spread": _percent(spread), "difference": abs(_percent(mean))},
    )


def unclear(needed: int | None, mean: float, half: float) -> Reason:
    """What would settle the verdict: further rounds, too many of them, or nothing, since the interval is narrow.

    `mean` and `half` are of the log ratio."""
    if needed is None:
        return Reason("too_noisy", {"least": MAX_FURTHER_ROUNDS})
    if needed == 0:
        return Reason("no_difference_above", {"percent": _percent(abs(mean) + half)})
    return Reason("more_rounds", {"needed": needed})
