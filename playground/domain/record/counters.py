"""What an engine and its GPUs reported at one moment."""

from __future__ import annotations

from dataclasses import dataclass

# NVML's reasons for a clock that is held down. The other bits are choices, and no trouble.
POWER_CAP = 0x4
# Hardware or driver slow it down: heat, or the power supply.
SLOWED = 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True, slots=True)
class Counters:
    """The engine's counters and gauges at one moment, and its GPUs' as whole cards. None: not reported.

    Of several cards: power and memory are sums, utilization is the mean, the clock that of the slowest, the
    temperature that of the hottest. `gpu_throttle`: why their clocks are held down, NVML's bits.
    """

    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    generation_tokens: int | None = None
    preemptions: int | None = None
    prefix_cache_queries: int | None = None
    prefix_cache_hits: int | None = None
    gpu_utilization: float | None = None
    gpu_memory_bytes: int | None = None
    gpu_power_w: float | None = None
    gpu_clock_mhz: int | None = None
    gpu_temperature_c: int | None = None
    gpu_throttle: int | None = None

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits: counters are complete."""
        return self.running == 0 and self.waiting == 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters `ms` after the run's start."""

    ms: float
    counters: Counters
