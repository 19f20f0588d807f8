"""How large the KV caches of engines are that share a card."""

from __future__ import annotations

from collections.abc import Sequence

from playground.domain.fit.engine_fit import equal_room
from playground.domain.fit.memory import Need

from .placement import PlannedEngine
from .preflight import SideCheck

FLAG = "--kv-cache-memory-bytes"


def equal(engines: Sequence[PlannedEngine], checks: Sequence[SideCheck]) -> list[int | None]:
    """The size in bytes for each engine, the same for all that share a card: with it none of them measures what is
    free while another one starts. None where vLLM is to find it: the engine has its card alone, its settings say a
    size or a share, or what one of those beside it takes is not known well enough."""
    sizes: list[int | None] = [None] * len(engines)
    for group in _sharing(engines):
        unset = [index for index in group if engines[index].settings.knobs.kv_cache_memory_bytes is None]
        needs = [need for index in unset if (need := _known(engines[index], checks[index])) is not None]
        if len(group) > 1 and unset and len(needs) == len(unset):
            for index in unset:
                sizes[index] = equal_room(needs)
    return sizes


def _known(engine: PlannedEngine, check: SideCheck) -> Need | None:
    settings, known = engine.settings, check.understood and engine.runtime.knows(FLAG)
    limited = settings.knobs.gpu_memory_utilization is not None or bool(settings.extra_flags)
    return check.need if known and not limited else None


def _sharing(engines: Sequence[PlannedEngine]) -> list[list[int]]:
    """The engines on GPUs, by their indices: those together that have a GPU in common, also through others."""
    groups: list[tuple[set[int], list[int]]] = []
    for index, engine in enumerate(engines):
        gpus, indices = set(engine.placement.gpus), [index]
        for group in [group for group in groups if group[0] & gpus]:
            groups.remove(group)
            gpus |= group[0]
            indices = [*group[1], *indices]
        groups.append((gpus, indices))
    return [indices for gpus, indices in groups if gpus]
