"""The t interval of log ratios, which every interval of a speed-up or of a mean comes from, and its inversions."""

from __future__ import annotations

from functools import lru_cache
from math import asinh, exp, log, sqrt

# Beyond this many further rounds an estimate means nothing: drift and the machine's other work dominate.
MAX_FURTHER_ROUNDS = 100


@lru_cache(maxsize=512)
def t_factor(degrees: float, of: int = 1) -> float:
    """Half of the 95% interval in standard errors.

    `of`: how many intervals are to hold together at 95% (Bonferroni), as for the best of so many.
    """
    # Imported here: it takes a quarter of a second, and most commands have no interval.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - 0.025 / of))


def half_width(spread: float, count: int) -> float:
    """Half the width of a mean's 95% t interval: t(0.975, n - 1) s / sqrt(n), n values, standard deviation s."""
    return t_factor(count - 1) * spread / sqrt(count)


def ratio_interval(log_ratio: float, half: float) -> tuple[float, float]:
    """The 95% interval of a ratio, from the middle and the half-width of its logarithm's."""
    return exp(log_ratio - half), exp(log_ratio + half)


def standard_error(interval: tuple[float, float], rounds: int) -> float:
    """The standard error of a log ratio, from the ratio's 95% interval over that many rounds."""
    return log(interval[1] / interval[0]) / 2 / t_factor(rounds - 1)


def further_rounds(mean: float, spread: float, count: int, target_relative_width: float) -> int | None:
    """Rounds until the interval excludes 1, or is as narrow as the target, if mean and spread stay as they are.

    `mean` and `spread` are of the log ratios of `count` rounds. Rounded up to whole A B B A. None: more than
    MAX_FURTHER_ROUNDS.
    """
    # (high - low) / speed-up = 2 sinh(half-width of the log).
    required_half = max(abs(mean), asinh(target_relative_width / 2))
    if half_width(spread, count) <= required_half:
        return 0
    first = count + 2 - count % 2
    for total in range(first, count + MAX_FURTHER_ROUNDS + 1, 2):
        if half_width(spread, total) <= required_half:
            return total - count
    return None
