"""The energy that a side's GPUs take while a load is sent to it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

from playground.domain.record.counters import Sample
from playground.engine.gpu_load import GpuLoad
from playground.load.driver_client import MeasuredLoad

from .served_side import ServedSide

# A card counts its energy ten times a second: in less than this, that would be more than a tenth.
LEAST_S = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What the cards reported `ms` after the run's start."""

    ms: float
    load: GpuLoad


class EnergyMeter:
    """Reads a side's cards at the first send and at the last byte of a load."""

    def __init__(self, served: ServedSide, since: float) -> None:
        """`since`: the run's start by the monotonic clock."""
        self._served = served
        self._since = since
        self._readings: list[Reading] = []

    @asynccontextmanager
    async def over(self, load: MeasuredLoad) -> AsyncIterator[None]:
        """Reads while the block runs the load."""
        task = asyncio.create_task(self._read(load))
        try:
            yield
        finally:
            if not load.ended.is_set():
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _read(self, load: MeasuredLoad) -> None:
        for moment in (load.began, load.ended):
            await moment.wait()
            ms = (time.monotonic() - self._since) * 1000
            reading = await self._served.gpu_load()
            if reading is None or not self._served.holds_alone(reading):
                return
            self._readings.append(Reading(ms, reading))

    def joules(self, samples: Sequence[Sample]) -> float | None:
        """The energy of the load; `samples`: the side's. None if the cards report none, or others used them."""
        if len(self._readings) < 2:
            return None
        first, last = self._readings
        return joules_between(first, last, samples)


def joules_between(first: Reading, last: Reading, samples: Sequence[Sample]) -> float | None:
    """By the cards' own counters, else by their power in these samples; None where neither is reported, or the two
    are less than LEAST_S apart."""
    if last.ms - first.ms < LEAST_S * 1000:
        return None
    if first.load.energy_j is not None and last.load.energy_j is not None:
        # The counter starts again where the driver is loaded again.
        return last.load.energy_j - first.load.energy_j if last.load.energy_j > first.load.energy_j else None
    sampled = [(item.ms, item.counters.gpu_power_w) for item in samples if first.ms < item.ms < last.ms]
    points = [(first.ms, first.load.power_w), *sampled, (last.ms, last.load.power_w)]
    measured = [(ms, watts) for ms, watts in points if watts is not None]
    if len(measured) < len(points):
        return None
    return sum((then - now) / 1000 * (before + after) / 2 for (now, before), (then, after) in pairwise(measured))
