"""What speculation gains in theory, and which k to choose.

A step that drafts proposes k tokens and verifies them at once. With a_i the share of drafts whose token at
position i is accepted (unconditional: all before it were, too), it yields 1 + sum of a_i tokens on average
(Leviathan et al. 2023, arXiv 2211.17192; with a_i = a^i that is their (1 - a^(k+1)) / (1 - a)). It costs as much
as r steps that draft nothing. Only a share c of the steps drafts (the coverage: 1 for a draft model, less for
n-gram), so that

    tokens a step  E = 1 + c x sum of a_i
    cost of a step     1 + c x (r - 1)
    speed-up       S = E / (1 + c x (r - 1))

S is of decoding: a ratio of TPOT, or of throughput where prefill is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from playground.domain.message import Message
from playground.domain.record.figures import SideFigures
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.spec.workload import Objective
from playground.domain.stats.intervals import ratio_interval, standard_error, t_factor
from playground.domain.stats.ratios import Ratio
from playground.domain.stats.verdicts import Verdict

Floats = npt.NDArray[np.float64]
Cost = TypeVar("Cost", float, Floats)

# The theory covers decoding: the first token comes from a step that drafts nothing, and goodput has thresholds.
DECODING: frozenset[Objective] = frozenset({"tpot", "throughput"})
DRAWS = 10_000
# With fewer drafting steps a few per cent of noise in the speed-up are several times that in a step's cost.
LEAST_COVERAGE = 0.2
# A best k that is less likely the fastest than this is named together with its rival.
SURE = 0.95


@dataclass(frozen=True, slots=True)
class SpeculationPoint:
    """One k as it was measured against no speculation, at one concurrency.

    `speed_up` and its 95% `interval` (None: too few rounds) are ratios over `rounds` rounds; `acceptance` has the
    unconditional rate at each position, `coverage` the share of decode steps that drafted, above 0.
    """

    k: int
    concurrency: int
    speed_up: float
    interval: tuple[float, float] | None
    rounds: int
    acceptance: tuple[float, ...]
    coverage: float

    @property
    def tokens_per_step(self) -> float:
        return tokens_per_step(self.acceptance, self.coverage)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the log speed-up."""
        return None if self.interval is None else standard_error(self.interval, self.rounds)


def measured_point(k: int, concurrency: int, verdict: Verdict, figures: SideFigures) -> SpeculationPoint | None:
    """The point from the verdict on a side that drafts k tokens, against no speculation, and that side's figures.

    None where its speed-up or acceptance is unknown, where it drafted nothing, or where the verdict is by a metric
    that the theory does not cover.
    """
    acceptance, coverage = figures.acceptance_rate_per_position, figures.draft_coverage
    if verdict.metric not in DECODING or verdict.speed_up is None or not acceptance or not coverage:
        return None
    # A verdict that is withheld does not speak for the whole run, and neither does its interval.
    interval = verdict.interval if Ratio.of_verdict(verdict) is not None else None
    return SpeculationPoint(k, concurrency, verdict.speed_up, interval, verdict.rounds, acceptance, coverage)


def by_concurrency(points: Iterable[SpeculationPoint]) -> dict[int, list[SpeculationPoint]]:
    """Points by concurrency, both it and k ascending. What a step costs depends on how many sequences share it."""
    groups: dict[int, list[SpeculationPoint]] = {}
    for point in sorted(points, key=lambda point: (point.concurrency, point.k)):
        groups.setdefault(point.concurrency, []).append(point)
    return groups


def tokens_per_step(acceptance: Sequence[float], coverage: float = 1.0) -> float:
    return 1 + coverage * sum(acceptance)


def expected_speed_up(acceptance: Sequence[float], coverage: float, cost: Cost) -> Cost:
    """`cost`: of a step that drafts, in steps that don't."""
    return tokens_per_step(acceptance, coverage) / (1 + coverage * (cost - 1))


def step_cost(point: SpeculationPoint) -> float:
    """r, from what was measured: S = E / (1 + c (r - 1)), solved for r.

    What speculation adds to the steps that draft nothing is charged to those that do.
    """
    return cost_from(point, point.speed_up)


def cost_from(point: SpeculationPoint, speed_up: Cost) -> Cost:
    """`step_cost` if the point's speed-up were this."""
    return 1 + (point.tokens_per_step / speed_up - 1) / point.coverage


def known_cost(point: SpeculationPoint) -> float | None:
    """`step_cost`; None where steps that draft are too rare to measure it.

    A step that drafts costs no less than one that does not: what lies below is noise.
    """
    return max(1.0, step_cost(point)) if point.coverage >= LEAST_COVERAGE else None


def geometric_rates(acceptance: float, k: int) -> tuple[float, ...]:
    """Unconditional rates by position where each token is accepted with the same probability, given those before.

    This is what vLLM's `synthetic_acceptance_rates` wants: it takes unconditional rates that never rise, one a
    position, and divides neighbours itself. Its CPU build refuses synthetic acceptance with an assertion.
    """
    return tuple(acceptance**position for position in range(1, k + 1))


def break_even_acceptance(k: int, cost: float) -> float | None:
    """The acceptance rate, alike at all positions, at which S = 1; None where even 1 does not pay.

    S = 1 where 1 + sum of a^i = r: steps that draft nothing neither gain nor lose, so coverage does not matter.
    """
    if tokens_per_step(geometric_rates(1.0, k)) < cost:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if tokens_per_step(geometric_rates(middle, k)) < cost:
            low = middle
        else:
            high = middle
    return high


def better_draft(cost: float, k: int, acceptances: Sequence[float], coverage: float = 1.0) -> list[float]:
    """The speed-up that a draft of the same cost would give, for each acceptance rate, alike at all positions."""
    return [expected_speed_up(geometric_rates(rate, k), coverage, cost) for rate in acceptances]


def if_accepted(k: int, cost: float, acceptance: float) -> Message:
    """A sentence on the predicted speed-up of a draft that drafts at every step."""
    [speed_up] = better_draft(cost, k, [acceptance])
    return Message("theory.better_draft", {"k": k, "percent": 100 * acceptance, "speed_up": speed_up})


def break_even(k: int, cost: float) -> Message:
    """A sentence on the acceptance rate that k needs to pay."""
    needed = break_even_acceptance(k, cost)
    params: dict[str, object] = {"k": k, "cost": cost}
    if needed is None:
        return Message("theory.never_pays", params)
    return Message("theory.break_even", params | {"percent": 100 * needed})


def speed_up_draws(points: Sequence[SpeculationPoint]) -> Floats:
    """DRAWS samples of each point's speed-up, by the t distribution of its log: a row a point. Each point has an
    interval. The same points always give the same draws.

    Rows are independent. Points measured against the same trials of a baseline are correlated in truth: then the
    order among them is more certain than the draws say, never less.
    """
    random = np.random.default_rng(0)
    rows = [
        np.exp(log(point.speed_up) + (point.standard_error or 0.0) * random.standard_t(point.rounds - 1, DRAWS))
        for point in points
    ]
    return np.array(rows)


@dataclass(frozen=True, slots=True)
class BestK:
    """The k to choose, "off" for no speculation, or None where no point has an interval yet.

    `confidence` is the probability that the choice is the fastest of all measured, no speculation included.
    """

    k: int | Literal["off"] | None
    confidence: float | None
    reason: Message


def best_k(points: Sequence[SpeculationPoint]) -> BestK:
    """The k to choose, by the points (at one concurrency) with an interval. It must show a clear gain: the fastest
    whose interval lies above 1. Picking the best of m flatters it, so this interval has a level of 1 - 0.05 / m
    (Bonferroni): a gain is claimed where there is none one time in forty at most.
    """
    known = [point for point in points if point.interval is not None]
    if not known:
        return BestK(None, None, Message("theory.best_unknown", {"least": MIN_ROUNDS}))
    draws = np.vstack([np.ones(DRAWS), speed_up_draws(known)])
    shares = np.bincount(draws.argmax(axis=0), minlength=len(draws)) / DRAWS
    intervals = [_interval(point, len(known)) for point in known]
    gains = [index for index, (low, _) in enumerate(intervals) if low > 1]
    chosen = max(gains or range(len(known)), key=lambda index: known[index].speed_up)
    best, (low, high) = known[chosen], intervals[chosen]
    params: dict[str, object] = {"k": best.k, "speed_up": best.speed_up, "low": low, "high": high}
    if not gains:
        slower = all(high < 1 for _, high in intervals)
        return BestK(
            "off", float(shares[0]), Message("theory.off_slower" if slower else "theory.off_unclear", params)
        )
    confidence = float(shares[chosen + 1])
    params["percent"] = 100 * confidence
    if confidence >= SURE:
        return BestK(best.k, confidence, Message("theory.best_k", params))
    # Some k, since no speculation is almost never the fastest where a gain is clear.
    others = [index for index in range(len(known)) if index != chosen]
    rival = known[max(others, key=lambda index: shares[index + 1])].k
    return BestK(best.k, confidence, Message("theory.best_k_unsure", params | {"rival": rival}))


def _interval(point: SpeculationPoint, of: int) -> tuple[float, float]:
    """The interval of a point's speed-up, for the best of `of` points."""
    half = t_factor(point.rounds - 1, of) * (point.standard_error or 0.0)
    return ratio_interval(log(point.speed_up), half)
