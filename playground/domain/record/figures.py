"""What figures are: distributions, and one side's figures. Unknown is None, never 0."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum
from statistics import fmean, quantiles
from typing import Annotated

from pydantic import Field

NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean and percentiles of one figure; percentiles interpolate linearly between order statistics. Only what
    another tool reports may lack some of them."""

    mean: NotNegative
    p50: NotNegative | None
    p90: NotNegative | None
    p95: NotNegative | None
    p99: NotNegative | None
    n: Annotated[int, Field(ge=1)] | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution | None:
        """None for no values."""
        if not values:
            return None
        if len(values) == 1:
            return cls(values[0], values[0], values[0], values[0], values[0], 1)
        cuts = quantiles(values, n=100, method="inclusive")
        return cls(fmean(values), cuts[49], cuts[89], cuts[94], cuts[98], len(values))

    @classmethod
    def of_repeated(cls, values: Sequence[tuple[float, int]]) -> Distribution | None:
        """The distribution of values that each occur so many times, by `of`'s definitions. What an endpoint counts
        may be any number: the values are not written out."""
        ordered = sorted((value, count) for value, count in values if count)
        if not ordered:
            return None
        ends = list(accumulate(count for _, count in ordered))
        n = ends[-1]

        def at(percent: int) -> float:
            index, rest = divmod((n - 1) * percent, 100)
            low = ordered[bisect_right(ends, index)][0]
            high = ordered[bisect_right(ends, min(index + 1, n - 1))][0]
            return (low * (100 - rest) + high * rest) / 100

        mean = fsum(value * count for value, count in ordered) / n
        return cls(mean, at(50), at(90), at(95), at(99), n)


@dataclass(frozen=True, slots=True)
class SideFigures:
    """One side's figures over all its requests. Goodput is None where no limits were set, the cost where
    there is no price."""

    ttft_ms: Distribution | None
    tpot_ms: Distribution | None
    itl_ms: Distribution | None
    chunk_gap_ms: Distribution | None
    e2el_ms: Distribution | None
    output_tokens_per_s: NotNegative | None
    total_tokens_per_s: NotNegative | None
    requests_per_s: NotNegative | None
    goodput_requests_per_s: NotNegative | None
    acceptance_rate: NotNegative | None
    acceptance_rate_per_position: tuple[NotNegative, ...] | None
    mean_acceptance_length: NotNegative | None
    draft_coverage: Share | None
    tokens_per_step: NotNegative | None
    output_tokens: Count | None
    requests: Count
    errors: dict[Annotated[str, Field(pattern="^[a-z_.]+$")], Annotated[int, Field(ge=1)]]
    approximate: bool = False
    energy_per_output_token_j: NotNegative | None = None
    cost_per_million_output_tokens: NotNegative | None = None
