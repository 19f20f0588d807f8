"""From a load profile and a seed to a schedule: which prompt goes when. The same seed gives the same schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from .workload import ConcurrencyProfile, LoadProfile, RampProfile, RateProfile, WavesProfile

MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Planned:
    """One request of a schedule. It leaves in its turn, `at_ms` after the start or later:

    while fewer than `limit` others are under way, and with `barrier` only when none is.
    """

    prompt: int
    at_ms: float
    limit: int
    barrier: bool = False


def schedule(profile: LoadProfile, seed: int, prompts: int) -> Iterator[Planned]:
    """All requests in order; without end for a profile that only time ends."""
    order = _prompt_order(seed, prompts)
    offsets = _offsets(profile, seed)
    for index in count() if profile.requests is None else range(profile.requests):
        at_ms = next(offsets)
        if profile.duration_s is not None and at_ms >= profile.duration_s * 1000:
            return
        barrier = isinstance(profile, WavesProfile) and index > 0 and index % profile.concurrency == 0
        yield Planned(next(order), at_ms, _limit(profile, index), barrier)


def _limit(profile: LoadProfile, index: int) -> int:
    match profile:
        case RampProfile(requests=int(total), first=first, last=last) if total > 1:
            return round(first + (last - first) * index / (total - 1))
        case RampProfile(first=first):
            return first
        case ConcurrencyProfile() | RateProfile() | WavesProfile():
            return profile.concurrency


def _offsets(profile: LoadProfile, seed: int) -> Iterator[float]:
    """When each request is due, in milliseconds. The first one is due at once."""
    if not isinstance(profile, RateProfile):
        while True:
            yield 0.0
    gap_ms = 1000 / profile.requests_per_s
    if profile.arrivals == "constant":
        # Multiplied, not added up: rounding must not let the rate drift.
        yield from (index * gap_ms for index in count())
    at_ms = 0.0
    # Another stream of random numbers than the prompts': their number must not move the offsets.
    for number in _random(seed ^ MASK):
        yield at_ms
        at_ms -= math.log(1 - (number >> 11) / 2**53) * gap_ms


def _prompt_order(seed: int, prompts: int) -> Iterator[int]:
    """Passes over all prompts, each in an order of its own."""
    numbers = _random(seed)
    while True:
        order = list(range(prompts))
        for last in range(prompts - 1, 0, -1):
            other = next(numbers) % (last + 1)
            order[last], order[other] = order[other], order[last]
        yield from order


def _random(seed: int) -> Iterator[int]:
    """SplitMix64: 64-bit numbers that no release of Python or of a library will ever change."""
    state = seed & MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        yield mixed ^ (mixed >> 31)
