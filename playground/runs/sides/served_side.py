"""What serves one side during its run."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from playground.domain.errors import EngineFailed
from playground.domain.record.counters import Counters
from playground.engine import gpu_load, telemetry
from playground.engine.gpu_load import GpuLoad
from playground.engine.nvml import own_processes
from playground.engine.server import Engine
from playground.load.endpoint import Endpoint
from playground.workers import RUNS

SETTLE_S = 3.0
POLL_S = 0.05


@dataclass(frozen=True)
class ServedSide:
    """An endpoint, and the engine behind it. Without an engine the endpoint is attached: its counters, its death
    and its remedies are unknown."""

    endpoint: Endpoint
    engine: Engine | None = None

    @property
    def warm(self) -> bool:
        """Whether it has answered before. An attached endpoint did when it was probed."""
        return self.engine is None or self.engine.warm

    def note_warm(self) -> None:
        if self.engine is not None:
            self.engine.warm = True

    @property
    def near_cores(self) -> tuple[int, ...]:
        """The cores of the processor near the engine's GPUs; empty: any will do."""
        return self.engine.placement.cores if self.engine is not None and self.engine.placement.gpus else ()

    async def counters(self) -> Counters | None:
        """The counters now; None where they can't be read. An attached endpoint's include other people's
        requests."""
        if self.engine is None:
            return None
        kind = self.engine.command.kind
        if kind is not None and not kind.counters:
            return None
        return await telemetry.read_counters(self.engine.client, kind.counters if kind else telemetry.SAMPLES)

    async def sample(self) -> Counters | None:
        """The counters, and how busy the engine's GPUs are, if it has any."""
        counters = await self.counters()
        if counters is None and self.engine is not None and self.engine.command.kind is not None:
            counters = Counters()
        if counters is None:
            return None
        load = await self.gpu_load()
        if load is None:
            return counters
        return replace(
            counters,
            gpu_utilization=load.utilization,
            gpu_memory_bytes=load.memory_bytes,
            gpu_power_w=load.power_w,
            gpu_clock_mhz=load.clock_mhz,
            gpu_temperature_c=load.temperature_c,
            gpu_throttle=load.throttle,
        )

    async def gpu_load(self) -> GpuLoad | None:
        """What the engine's GPUs do now; None without any."""
        return await RUNS.run(gpu_load.read, self.engine.placement.gpus) if self.engine is not None else None

    def holds_alone(self, load: GpuLoad) -> bool:
        """Whether only this run's engines compute on the cards. In a container NVML may give the host's ids: then
        as many processes as there are engines are taken for theirs."""
        if self.engine is None or load.processes is None:
            return False
        if all(len(processes) <= self.engine.placement.sharing for processes in load.processes):
            return True
        ours = own_processes()
        return all(processes <= ours for processes in load.processes)

    async def idle_counters(self) -> Counters | None:
        """The counters once nothing runs or waits; None if the engine does not become idle (they would be
        incomplete)."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            counters = await self.counters()
            if counters is None:
                return None
            if counters.idle:
                return counters
            await asyncio.sleep(POLL_S)
        return None

    async def failure(self, within_s: float) -> EngineFailed | None:
        """What killed the engine, if it is dead or dies within that time."""
        return await self.engine.failure(within_s) if self.engine is not None else None
