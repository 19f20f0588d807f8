"""Slows down guessing of the password."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .addresses import network

# Failed attempts before the first delay, for one address and for all together.
FREE, FREE_FOR_ALL = 10, 100
# The longest delay, in seconds: for one address, and for all together, where visitors wait with the attacker.
LONGEST_S, LONGEST_FOR_ALL_S = 300.0, 2.0
# After so many seconds without an attempt an address starts anew; so many addresses are remembered.
FORGOTTEN_S = 3600.0
MOST_ADDRESSES = 10_000


@dataclass
class _Attempts:
    count: int = 0
    latest: float = 0.0
    not_before: float = 0.0


class Throttle:
    """Attempts count as failed until they have succeeded: many at once are not free."""

    def __init__(self) -> None:
        self._all = _Attempts()
        self._by_address: dict[str, _Attempts] = {}

    def attempt(self, address: str) -> float:
        """Count an attempt. Returns the seconds to wait before the next one is heard; 0 if this one is."""
        now = time.monotonic()
        attempts = self._by_address.setdefault(network(address), _Attempts())
        if len(self._by_address) > MOST_ADDRESSES:
            del self._by_address[next(iter(self._by_address))]
        wait = max(attempts.not_before, self._all.not_before) - now
        if wait > 0:
            return wait
        _count(attempts, now, FREE, LONGEST_S)
        _count(self._all, now, FREE_FOR_ALL, LONGEST_FOR_ALL_S)
        return 0

    def succeeded(self, address: str) -> None:
        """The latest attempt from this address was right."""
        self._by_address.pop(network(address), None)
        self._all.count = max(0, self._all.count - 1)


def _count(attempts: _Attempts, now: float, free: int, longest_s: float) -> None:
    if now - attempts.latest > FORGOTTEN_S:
        attempts.count = 0
    attempts.count += 1
    attempts.latest = now
    if attempts.count >= free:
        attempts.not_before = now + min(longest_s, 2.0 ** min(attempts.count - free, 30))
