"""How busy GPUs are, and how much of their memory is in use, as NVML reports it for whole cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from .nvml import opened


@dataclass(frozen=True)
class GpuLoad:
    """`utilization`: share of the last moment (NVML: a sixth of a second to one) in which a kernel ran, the mean
    over the cards. `memory_bytes`: in use by all processes, on all these cards."""

    utilization: float
    memory_bytes: int


def read(gpus: Sequence[int]) -> GpuLoad | None:
    """The load of these cards now; None for no cards, or where NVML does not report it."""
    nvml = opened() if gpus else None
    if nvml is None:
        return None
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in gpus]
        busy = [nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100 for handle in handles]
        used = [int(nvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in handles]
    except nvml.NVMLError:
        return None
    return GpuLoad(fmean(busy), sum(used))
