"""How a sweep shares out its time, and what it will take."""

from __future__ import annotations

from dataclasses import dataclass

from .plan import SweepPlan

# Where this host has started no engine yet: seconds until one is ready, as seen on two cores and on an H200.
START_S = {"cpu": 60.0, "cuda": 120.0}
# What a point takes beside its rounds (warm-up, the check of the answers), as a share of them.
BESIDE = 0.35
# No round fits into less than the first on any machine; six rounds of a small workload fit into the second.
LEAST_ROUNDS_S = 1.0
WORTH_S = 15.0
# A search's point may take one part in so many of the time that is left: it ends by itself after six rounds, and
# with fewer it tells nothing.
SHARES = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep will take at most: `start_s` an engine, `point_s` a point beside that, in seconds.

    `fitting`: how many of the points there is time for; `total_s`: of those.
    `known_starts`: how many earlier starts on this host the first figure is the median of; 0: a rule of thumb.
    """

    points: int
    fitting: int
    engine_starts: int
    start_s: float
    known_starts: int
    point_s: float
    total_s: float


def fitting(plan: SweepPlan, left_s: float, points: int, start_s: float) -> tuple[int, float]:
    """How many of the points fit into what is left, and how long each one's rounds may take then.

    As many as get WORTH_S, one in any case. `start_s`: what a point's engine starts take on average.
    """
    fits = min(points, max(1, int(left_s / (start_s + WORTH_S * (1 + BESIDE)))))
    shares = min(fits, SHARES) if plan.search else fits
    return fits, max(0.0, left_s / shares - start_s) / (1 + BESIDE)
