"""What an engine and its GPUs reported at one moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counters:
    """The engine's counters and gauges at one moment, and its GPUs' as whole cards. None: not reported."""

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

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits: counters are complete."""
        return self.running == 0 and self.waiting == 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters `ms` after the run's start."""

    ms: float
    counters: Counters
