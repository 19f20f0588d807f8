"""Two lists of answers compared token by token: exactly at temperature 0, by a two-sample test above.

Token sequences are lists of token ids; positions count from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import ceil, sqrt
from statistics import NormalDist, fmean
from typing import Literal

import numpy as np
import numpy.typing as npt

from playground.domain.message import Message

TokenIds = Sequence[int]
Kind = Literal["near-tie", "real difference", "unknown"]
Floats = npt.NDArray[np.float64]

# A gap between two tokens' logprobs (nats) up to which rounding alone may swap them: two spacings of a logit
# between 16 and 32, where the largest logits of common models lie. A spacing there is 2^(4 - bits of the
# fraction): bfloat16 has 7, float16 10. Engines round differently because verifying k tokens and decoding one use
# other kernels and other orders of summation. float32 is not limited by its spacing but by the sums of all
# layers, whose errors reach some 1e-4.
NEAR_TIE_NATS: Mapping[str, float] = {"bfloat16": 0.25, "float16": 0.03125, "float32": 0.001}

LEAST_SAMPLES = 5
# The end of a sequence counts as a token.
_END = -1


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where one pair first differs. A token is None where that side's answer had ended."""

    pair: int
    position: int
    tokens: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class GreedyCheck:
    """Answers at temperature 0. `compared` leaves out pairs with unknown ids."""

    compared: int
    identical: int
    divergences: tuple[Divergence, ...]


def check_greedy(pairs: Sequence[tuple[TokenIds | None, TokenIds | None]]) -> GreedyCheck:
    """Compare pairs of both sides' answers to one prompt; an answer is None where an endpoint gave no ids."""
    known = [(index, a, b) for index, (a, b) in enumerate(pairs) if a is not None and b is not None]
    divergences = []
    for index, a, b in known:
        position = common_prefix(a, b)
        if position < max(len(a), len(b)):
            tokens = (a[position] if position < len(a) else None, b[position] if position < len(b) else None)
            divergences.append(Divergence(index, position, tokens))
    return GreedyCheck(len(known), len(known) - len(divergences), tuple(divergences))


def common_prefix(a: TokenIds, b: TokenIds) -> int:
    """How many tokens both begin with: the position of the first divergence, if there is one."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)


def classify(
    tokens: tuple[int | None, int | None],
    top_a: Mapping[int, float] | None,
    top_b: Mapping[int, float] | None,
    near_tie_nats: float = NEAR_TIE_NATS["bfloat16"],
) -> Kind:
    """Whether rounding may explain a divergence.

    `top_a` and `top_b` are the sides' top logprobs (token -> natural log) at that position. A near-tie if either
    side had the two tokens closer than the threshold; a real difference if neither had; unknown where an answer
    had ended, or logprobs are missing.
    """
    first, second = tokens
    if first is None or second is None:
        return "unknown"
    gaps = [_gap(top_a, first, second), _gap(top_b, second, first)]
    if any(gap is not None and exact and gap < near_tie_nats for gap, exact in gaps):
        return "near-tie"
    if all(gap is not None and gap >= near_tie_nats for gap, _ in gaps):
        return "real difference"
    return "unknown"


def _gap(top: Mapping[int, float] | None, chosen: int, other: int) -> tuple[float | None, bool]:
    """Nats between the chosen token and the other, and whether that is exact: a token below the top ones is at
    least as far away as the last of these."""
    if not top or chosen not in top:
        return None, False
    if other in top:
        return abs(top[chosen] - top[other]), True
    return top[chosen] - min(top.values()), False


@dataclass(frozen=True, slots=True)
class SampledCheck:
    """Two samples of answers to one prompt, above temperature 0.

    `p_value` is for "both sides draw from one distribution", None with fewer than 5 answers a side. Common
    prefixes are mean lengths in tokens, over pairs of answers within each side and between the sides: about equal
    where the distributions are. `distances` holds the total variation distance at each position (the share of
    answers that would have to change). `detectable_shift` is the smallest change in one token's share at one
    position that this test would find four times in five, None where even a change of 1 would not do.
    """

    p_value: float | None
    samples: tuple[int, int]
    prefix_within: tuple[float | None, float | None]
    prefix_between: float | None
    distances: tuple[float, ...]
    detectable_shift: float | None

    def statement(self, level: float = 0.05) -> Message:
        """What the test shows, and what it can't show."""
        params: dict[str, object] = {"a": self.samples[0], "b": self.samples[1], "p": self.p_value}
        if self.p_value is None:
            return Message("outputs.too_few", params | {"least": LEAST_SAMPLES})
        if self.p_value < level:
            return Message("outputs.differ", params)
        if self.detectable_shift is None:
            return Message("outputs.cannot_tell", params)
        # A shift of 10 points is what a reader would call small.
        needed = samples_needed(0.1, len(self.distances))
        return Message("outputs.alike", params | {"shift": 100 * self.detectable_shift, "wanted": needed})


def check_sampled(
    a: Sequence[TokenIds], b: Sequence[TokenIds], positions: int = 32, permutations: int = 999, seed: int = 0
) -> SampledCheck:
    """A permutation test on token frequencies at the first positions and on common prefixes, together.

    Statistics: the total variation distance between both samples' token frequencies at each position, and the
    excess of common prefixes within sides over those between (the squared maximum mean discrepancy of the kernel
    "length of the common prefix", Gretton et al. 2012). Each is standardised by its own permutations and the
    largest counts (max-T, Westfall and Young 1993), which corrects for looking at many positions. Under equal
    distributions every relabelling is as likely, so the p-value is exact for any model and any lengths.
    """
    pooled = [*a, *b]
    positions = min(positions, max((len(tokens) + 1 for tokens in pooled), default=0))
    prefixes = np.array([[common_prefix(x, y) for y in pooled] for x in pooled], dtype=np.float64)
    within = (_mean_prefix(a), _mean_prefix(b))
    between = fmean(common_prefix(x, y) for x, y in product(a, b)) if a and b else None
    if min(len(a), len(b)) < LEAST_SAMPLES:
        return SampledCheck(None, (len(a), len(b)), within, between, (), None)
    np.minimum(prefixes, positions, out=prefixes)
    weights = _relabellings(len(a), len(b), permutations, seed)
    distances = np.stack([_distances(pooled, position, weights) for position in range(positions)], axis=1)
    excess = np.einsum("pi,ij,pj->p", weights, prefixes, weights, optimize=True)
    statistics = np.column_stack([distances, excess])
    spread = statistics.std(axis=0)
    # A statistic that no relabelling changes (a position where all agree) says nothing.
    telling = spread > 1e-12
    scores = (statistics[:, telling] - statistics[:, telling].mean(axis=0)) / spread[telling]
    highest = scores.max(axis=1, initial=0.0)
    # The observed labelling is the first row, and one of those counted; rounding must not break a tie.
    p_value = float(np.mean(highest >= highest[0] - 1e-9))
    shift = detectable_shift(len(a), len(b), positions)
    observed = tuple(float(distance) for distance in distances[0])
    return SampledCheck(p_value, (len(a), len(b)), within, between, observed, shift)


def _mean_prefix(sample: Sequence[TokenIds]) -> float | None:
    pairs = [common_prefix(x, y) for x, y in combinations(sample, 2)]
    return fmean(pairs) if pairs else None


def _relabellings(a: int, b: int, permutations: int, seed: int) -> Floats:
    """Shape (1 + permutations, a + b): 1/a for an answer of side A, -1/b for one of B; the true labels first."""
    weights = np.tile(np.r_[np.full(a, 1 / a), np.full(b, -1 / b)], (1 + permutations, 1))
    np.random.default_rng(seed).permuted(weights[1:], axis=1, out=weights[1:])
    return weights


def _distances(pooled: Sequence[TokenIds], position: int, weights: Floats) -> Floats:
    """Total variation distance at one position for each relabelling: half the sum of differences in share."""
    tokens = [answer[position] if position < len(answer) else _END for answer in pooled]
    kinds = sorted(set(tokens))
    one_hot = np.array([[float(token == kind) for kind in kinds] for token in tokens])
    distances: Floats = np.abs(weights @ one_hot).sum(axis=1) / 2
    return distances


def _critical(positions: int, level: float, power: float) -> float:
    """z of a two-sided test at `level` shared by all statistics, plus z of the power."""
    normal = NormalDist()
    return normal.inv_cdf(1 - level / (2 * (positions + 1))) + normal.inv_cdf(power)


def detectable_shift(a: int, b: int, positions: int, level: float = 0.05, power: float = 0.8) -> float | None:
    """The change in one token's share at one position that is found with this power; None if none is.

    Two-proportion formula, at shares around one half where it is hardest, with the level shared between the
    statistics (Bonferroni: somewhat pessimistic, since the permutation correction is milder). A difference that
    moves many positions at once is found sooner.
    """
    shift = _critical(positions, level, power) * sqrt(0.25 / a + 0.25 / b)
    return shift if shift < 1 else None


def samples_needed(shift: float, positions: int, level: float = 0.05, power: float = 0.8) -> int:
    """Answers a side, for a change of that size to be found."""
    return ceil(0.5 * (_critical(positions, level, power) / shift) ** 2)
