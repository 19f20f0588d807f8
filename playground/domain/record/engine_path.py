"""The path that an engine takes: how it schedules, runs and caches, as it says itself; and where the paths of a
run's sides differ in what nobody set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.case import Side
from playground.domain.spec.difference import settings_of

Runner = Literal["V1", "V2"]


@dataclass(frozen=True, slots=True)
class EnginePath:
    """What an engine says of itself when it is ready. None: it does not say.

    `max_num_scheduled_tokens`: those of a step, drafts left out. `cudagraph_sizes`: the batches with a graph of
    their own, in tokens. `kernels`: those of quantized layers, of experts and of the sampler.
    """

    model_runner: Runner | None = None
    async_scheduling: bool | None = None
    attention_backend: str | None = None
    cudagraph_mode: str | None = None
    cudagraph_sizes: tuple[int, ...] | None = None
    kv_cache_tokens: int | None = None
    kv_cache_dtype: str | None = None
    dtype: str | None = None
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_scheduled_tokens: int | None = None
    kernels: tuple[str, ...] | None = None
    executor: str | None = None

    def text(self, name: str) -> str | Message | None:
        """One of the values for a reader; None: unknown, or nothing."""
        value = getattr(self, name)
        if name == "cudagraph_sizes" and value:
            return f"{len(value)} ({value[0]}-{value[-1]})" if len(value) > 1 else str(value[0])
        if isinstance(value, bool):
            return Message("path.on" if value else "path.off")
        if isinstance(value, tuple):
            return ", ".join(value) or None
        return f"{value:,}" if isinstance(value, int) else value


# What changes the speed by itself -> the settings that decide it. The room for the cache does not, while it is not
# full, and that is a finding of its own; the graphs' sizes follow from the drafts' length.
DECIDED_BY: dict[str, tuple[str, ...]] = {
    "async_scheduling": ("knobs.async_scheduling",),
    "model_runner": ("knobs.use_v2_model_runner",),
    "attention_backend": ("knobs.attention_backend", "knobs.kv_cache_dtype", "knobs.block_size"),
    "cudagraph_mode": ("knobs.enforce_eager",),
    "kv_cache_dtype": ("knobs.kv_cache_dtype",),
    "dtype": ("knobs.dtype",),
    "prefix_caching": ("knobs.enable_prefix_caching",),
    "chunked_prefill": ("knobs.enable_chunked_prefill",),
    "max_num_batched_tokens": ("knobs.max_num_batched_tokens", "knobs.max_num_seqs"),
    "max_num_scheduled_tokens": ("knobs.max_num_batched_tokens", "knobs.max_num_seqs"),
    "kernels": ("knobs.quantization", "knobs.dtype"),
    "executor": (
        "knobs.distributed_executor_backend",
        "knobs.tensor_parallel_size",
        "knobs.pipeline_parallel_size",
    ),
}
NEGLIGIBLE = 0.05
# Another model, another vLLM or a flag of its own may change all of them.
DECIDES_ALL = ("target", "runtime", "extra_flags", "base_url")


@dataclass(frozen=True, slots=True)
class PathDifference:
    """One part of the path, and what it is on each of the two sides."""

    name: str
    values: tuple[str | Message, str | Message]

    @property
    def message(self) -> Message:
        first, second = self.values
        return Message("path.differs", {"name": Message(f"path.{self.name}"), "first": first, "second": second})


def unset_differences(
    sides: tuple[Side, Side], paths: tuple[EnginePath | None, EnginePath | None]
) -> list[PathDifference]:
    """Where the paths of two sides are known to differ although their settings agree in all that decides it."""
    first, second = paths
    if first is None or second is None:
        return []
    settings = [settings_of(side) for side in sides]
    unset: list[PathDifference] = []
    for name, deciding in DECIDED_BY.items():
        agreed = all(settings[0].get(key) == settings[1].get(key) for key in (*deciding, *DECIDES_ALL))
        values = (first.text(name), second.text(name))
        alike = _alike(getattr(first, name), getattr(second, name))
        if agreed and values[0] is not None and values[1] is not None and not alike:
            unset.append(PathDifference(name, (values[0], values[1])))
    return unset


def _alike(first: object, second: object) -> bool:
    """Limits that differ by less than NEGLIGIBLE explain no speed."""
    if isinstance(first, int) and isinstance(second, int) and not isinstance(first, bool):
        return abs(first - second) < NEGLIGIBLE * max(first, second)
    return first == second


def listed(differences: Sequence[PathDifference]) -> Message:
    """All of them in one line; there is at least one."""
    *others, last = [difference.message for difference in differences]
    for message in reversed(others):
        last = Message("path.and", {"first": message, "second": last})
    return last
