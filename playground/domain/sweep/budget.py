"""How a sweep divides its time among its points, and how long it will take."""

from __future__ import annotations

from dataclasses import dataclass

from playground.domain.spec.measurement import MIN_ROUNDS

from .plan import SweepPlan

# Where this host has started no engine yet: seconds until one is ready, as seen on two cores and on an H200.
START_S = {"cpu": 60.0, "cuda": 120.0}
# What a point takes beside its rounds (warm-up, the check of the answers), as a share of them.
BESIDE = 0.35
# No round fits into less than the first on any machine; six rounds of a small workload fit into the second.
LEAST_ROUNDS_S = 1.0
WORTH_S = 15.0
# A point of a search may take one in SHARES parts of the time that is left: it ends by itself after six rounds,
# and fewer decide nothing.
SHARES = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """The seconds that a sweep takes at most: `start_s` for each engine start, `point_s` for each point besides.

    `fitting`: how many of the points there is time for; `total_s`: for those. `start_s` is the median of
    `known_starts` earlier starts on this host, or a rule of thumb where there are none. `worth_s`: what a point's
    rounds take at least to be worth it.
    """

    points: int
    fitting: int
    engine_starts: int
    start_s: float
    known_starts: int
    point_s: float
    total_s: float
    worth_s: float = WORTH_S


def worth_s(round_s: float | None) -> float:
    """How long the rounds of a point take at least: the fewest that give an interval, where a round's seconds are
    known."""
    return max(WORTH_S, MIN_ROUNDS * (round_s or 0.0))


def fitting(
    plan: SweepPlan, left_s: float, points: int, start_s: float, least_s: float = WORTH_S
) -> tuple[int, float]:
    """How many of the points fit into what is left, and how long each one's rounds may take then.

    As many as get `least_s` each, and at least one. `start_s`: what a point's engine starts take on average.
    """
    fits = min(points, max(1, int(left_s / (start_s + least_s * (1 + BESIDE)))))
    shares = min(fits, SHARES) if plan.search else fits
    return fits, max(0.0, left_s / shares - start_s) / (1 + BESIDE)
