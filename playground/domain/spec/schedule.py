"""Schedules: which prompt leaves when. The same pace and seed give the same schedule.

Plain Python: the load driver starts anew for each turn of a side, and importing pydantic took half of that time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Pace:
    """What a load profile comes to.

    It ends after so many requests or seconds, whichever comes first. From `first` to `last`, evenly over the
    requests, may be under way at once. Requests are due every `gap_ms`, or at random, that far apart on average.
    With `wave`, so many wait until none of those before them is under way.
    """

    requests: int | None
    duration_s: float | None
    first: int
    last: int
    gap_ms: float = 0.0
    random: bool = False
    wave: int | None = None

    @property
    def peak(self) -> int:
        """The most requests that can be under way at once."""
        most = max(self.first, self.last)
        return min(most, self.requests or most)

    def limit(self, index: int) -> int:
        """How many requests may be under way once request `index` is, itself included."""
        if self.requests is None:
            return self.last
        return round(self.first + (self.last - self.first) * index / max(1, self.requests - 1))

    def barrier(self, index: int) -> bool:
        """Whether request `index` waits until no other is under way."""
        return self.wave is not None and index > 0 and index % self.wave == 0

    def offsets(self, seed: int) -> Iterator[float]:
        """When each request is due, in milliseconds, without end. The first one is due at once."""
        if not self.random:
            # Multiplied, not added up: rounding must not let the rate drift.
            yield from (index * self.gap_ms for index in count())
        at_ms = 0.0
        # A separate stream of random numbers: the number of prompts must not change the offsets.
        for number in _random(seed ^ MASK):
            yield at_ms
            at_ms -= math.log(1 - (number >> 11) / 2**53) * self.gap_ms


@dataclass(frozen=True, slots=True)
class Planned:
    """One request of a schedule. It leaves in its turn, `at_ms` after the start or later:

    while fewer than `limit` others are under way, and with `barrier` only when none is.
    """

    prompt: int
    at_ms: float
    limit: int
    barrier: bool = False


def schedule(pace: Pace, seed: int, prompts: int) -> Iterator[Planned]:
    """All requests in order; without end for a pace that only time ends."""
    order = _prompt_order(seed, prompts)
    offsets = pace.offsets(seed)
    for index in count() if pace.requests is None else range(pace.requests):
        at_ms = next(offsets)
        if pace.duration_s is not None and at_ms >= pace.duration_s * 1000:
            return
        yield Planned(next(order), at_ms, pace.limit(index), pace.barrier(index))


def _prompt_order(seed: int, prompts: int) -> Iterator[int]:
    """Passes over all prompts, each in another order."""
    numbers = _random(seed)
    while True:
        order = list(range(prompts))
        for last in range(prompts - 1, 0, -1):
            other = next(numbers) % (last + 1)
            order[last], order[other] = order[other], order[last]
        yield from order


def _random(seed: int) -> Iterator[int]:
    """SplitMix64: 64-bit numbers that are the same in every release of Python and of the libraries."""
    state = seed & MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        yield mixed ^ (mixed >> 31)
