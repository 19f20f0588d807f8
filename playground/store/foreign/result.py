"""What is read of another tool's result, and how its values are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.record.figures import SideFigures
from playground.domain.spec.load_profile import ConcurrencyProfile, LoadProfile, RateProfile
from playground.domain.unicode import mended

MOST_CONCURRENT = 4096
# SQLite's largest number.
MOST_COUNTED = 2**63 - 1
# What would steer a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True)
class Result:
    """`version`: the tool's own; `engine_version`: vLLM's; `address`: the endpoint's; `prompts`: what was sent, by
    the name that the document has for it."""

    created_at: datetime
    model: str
    label: str
    profile: LoadProfile
    figures: SideFigures
    version: str | None = None
    engine_version: str | None = None
    address: str | None = None
    prompts: str | None = None


class Values:
    """A table of a document. What it lacks is None; what is of another kind raises InvalidInput with its place."""

    def __init__(self, values: Mapping[str, Any], place: str = "") -> None:
        self._values = values
        self._place = place

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def number(self, *keys: str) -> float | None:
        """The first of these that is there. NaN and infinity, which stand for no value, are None."""
        for key in keys:
            value = self._values.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise self.refused(key, value)
            try:
                return float(value) if isfinite(value) else None
            except OverflowError:
                raise self.refused(key, value) from None
        return None

    def count(self, *keys: str) -> int | None:
        number = self.number(*keys)
        if number is not None and number > MOST_COUNTED:
            raise self.refused(keys[0], number)
        return None if number is None else round(number)

    def text(self, key: str) -> str | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.refused(key, value)
        return CONTROL.sub(" ", mended(value)) if value else None

    def table(self, key: str) -> Values:
        """Empty if there is none."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.refused(key, value)
        return Values(value or {}, f"{self._place}{key}.")

    def shares(self, key: str) -> tuple[float, ...] | None:
        value = self._values.get(key)
        if not value:
            return None
        if not isinstance(value, list):
            raise self.refused(key, value)
        items = Values(dict(zip(map(str, range(len(value))), value, strict=True)), f"{self._place}{key}.")
        return tuple(items.number(str(index)) or 0.0 for index in range(len(value)))

    def unlimited(self, key: str) -> bool:
        """Whether it is infinity, by its name or as a number."""
        return self._values.get(key) in ("inf", float("inf"))

    def first(self, key: str) -> Values:
        """The first table of a list."""
        value = self._values.get(key)
        if not isinstance(value, list) or not value or not isinstance(value[0], dict):
            raise self.refused(key, value)
        return Values(value[0], f"{self._place}{key}.")

    def missing(self, key: str) -> InvalidInput:
        return InvalidInput("foreign.missing", key=f"{self._place}{key}")

    def refused(self, key: str, value: object) -> InvalidInput:
        return InvalidInput("foreign.value", key=f"{self._place}{key}", value=repr(value)[:60])


def load(requests: int, concurrency: int | None, rate: float | None = None, *, even: bool = False) -> LoadProfile:
    """The load as a profile. `concurrency` None: all at once."""
    at_once = min(max(concurrency or requests, 1), MOST_CONCURRENT)
    if not rate:
        return ConcurrencyProfile(concurrency=at_once, requests=max(requests, 1))
    return RateProfile(
        requests_per_s=rate,
        arrivals="constant" if even else "poisson",
        concurrency=at_once,
        requests=max(requests, 1),
    )
