"""What GPUs do at one moment, as NVML reports it for whole cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from statistics import fmean
from types import ModuleType
from typing import Any

from .nvml import opened


@dataclass(frozen=True)
class GpuLoad:
    """Of several cards: sums, but the mean utilization, the slowest clock and the hottest temperature. None: the
    cards do not report it.

    `utilization`: share of the last moment (NVML: a sixth of a second to one) in which a kernel ran.
    `memory_bytes`: in use by all processes. `energy_j`: since the driver was loaded, which a card counts ten times
    a second. `throttle`: why a clock is held down, NVML's bits. `processes`: the ids of those that compute on
    each card.
    """

    utilization: float | None = None
    memory_bytes: int | None = None
    power_w: float | None = None
    energy_j: float | None = None
    clock_mhz: int | None = None
    temperature_c: int | None = None
    throttle: int | None = None
    processes: tuple[frozenset[int], ...] | None = None


def read(gpus: Sequence[int]) -> GpuLoad | None:
    """The load of these cards now; None for no cards, or where NVML has none of them."""
    nvml = opened() if gpus else None
    if nvml is None:
        return None
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in gpus]
    except nvml.NVMLError:
        return None

    def of_all(reading: Callable[[ModuleType, Any], Any], together: Callable[[list[Any]], Any]) -> Any:
        try:
            return together([reading(nvml, handle) for handle in handles])
        except nvml.NVMLError:
            return None

    return GpuLoad(
        utilization=of_all(lambda lib, card: lib.nvmlDeviceGetUtilizationRates(card).gpu / 100, fmean),
        memory_bytes=of_all(lambda lib, card: int(lib.nvmlDeviceGetMemoryInfo(card).used), sum),
        power_w=of_all(lambda lib, card: lib.nvmlDeviceGetPowerUsage(card) / 1000, sum),
        energy_j=of_all(lambda lib, card: lib.nvmlDeviceGetTotalEnergyConsumption(card) / 1000, sum),
        clock_mhz=of_all(lambda lib, card: int(lib.nvmlDeviceGetClockInfo(card, lib.NVML_CLOCK_SM)), min),
        temperature_c=of_all(
            lambda lib, card: int(lib.nvmlDeviceGetTemperature(card, lib.NVML_TEMPERATURE_GPU)), max
        ),
        throttle=of_all(
            lambda lib, card: int(lib.nvmlDeviceGetCurrentClocksThrottleReasons(card)),
            lambda bits: reduce(or_, bits),
        ),
        processes=of_all(
            lambda lib, card: frozenset(item.pid for item in lib.nvmlDeviceGetComputeRunningProcesses(card)), tuple
        ),
    )
