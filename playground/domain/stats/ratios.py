"""Ratios with their uncertainty, and what can be made of several of them: quotients and means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, log, sqrt
from statistics import fmean, stdev

from playground.domain.spec.measurement import MIN_ROUNDS

from .intervals import ratio_interval, standard_error, t_factor
from .reasons import ReasonKind
from .verdicts import Verdict

# Why a verdict is withheld although there is an interval: it does not speak for the whole run.
UNSOUND: tuple[ReasonKind, ...] = ("ratio_moves", "left_out")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A positive figure, by its log: the mean over rounds, that mean's standard error, and the degrees of freedom
    behind the error."""

    log: float
    error: float
    degrees: float

    @classmethod
    def of_verdict(cls, verdict: Verdict) -> Ratio | None:
        """The verdict's speed-up; None without an interval, or where the verdict is withheld in spite of it."""
        if verdict.interval is None or verdict.speed_up is None:
            return None
        withheld = verdict.reason is not None and verdict.reason.kind in UNSOUND
        if verdict.verdict == "no clear difference" and withheld:
            return None
        error = standard_error(verdict.interval, verdict.rounds)
        return cls(log(verdict.speed_up), error, verdict.rounds - 1)

    @classmethod
    def of_values(cls, values: Sequence[float | None]) -> Ratio | None:
        """One value a round, in any unit; None if fewer than MIN_ROUNDS are known or any is not."""
        logs = [log(value) for value in values if value is not None and value > 0]
        if len(logs) < max(MIN_ROUNDS, len(values)):
            return None
        return cls(fmean(logs), stdev(logs) / sqrt(len(logs)), len(logs) - 1)

    @property
    def value(self) -> float:
        return exp(self.log)

    @property
    def interval(self) -> tuple[float, float]:
        """95%, by the t distribution."""
        return self.interval_of_one_in(1)

    def interval_of_one_in(self, count: int) -> tuple[float, float]:
        """The interval of the best of so many, which the choice flatters: all of their intervals together hold at
        95% (Bonferroni)."""
        return ratio_interval(self.log, t_factor(self.degrees, count) * self.error)

    @property
    def inverse(self) -> Ratio:
        return Ratio(-self.log, self.error, self.degrees)


def quotient(dividend: Ratio, divisor: Ratio) -> Ratio:
    """The quotient of two ratios that were measured independently of each other."""
    error, degrees = _combined([dividend, divisor])
    return Ratio(dividend.log - divisor.log, error, degrees)


def mean(ratios: Sequence[Ratio]) -> Ratio:
    """Geometric mean of one or more that were measured independently of each other."""
    error, degrees = _combined(ratios)
    return Ratio(fmean(ratio.log for ratio in ratios), error / len(ratios), degrees)


def _combined(ratios: Sequence[Ratio]) -> tuple[float, float]:
    """Standard error of their logs' sum, and its degrees of freedom (Welch 1947, Satterthwaite 1946)."""
    variances = [ratio.error**2 for ratio in ratios]
    total = fsum(variances)
    spread = fsum(variance**2 / ratio.degrees for variance, ratio in zip(variances, ratios, strict=True))
    degrees = total**2 / spread if spread else min(ratio.degrees for ratio in ratios)
    return sqrt(total), degrees
