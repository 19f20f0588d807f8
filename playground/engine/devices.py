"""The machine's processor, memory and GPUs."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import psutil

from playground.domain.fit import card

from .nvml import opened, own_processes

logger = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")
# NVML's level of two GPUs that have nothing in common but the system, and its index of NVLink among their links.
FAR = 50
NVLINK = 2
# More of a card's memory in use than a driver takes.
BUSY_SHARE = 0.05


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU as NVML reports it; memory in bytes. `capability`: its compute capability, as (9, 0).

    `cores`: those of the processor that are near it; empty: unknown. `distances`: how far it is from each other
    GPU, by index: 0 by NVLink, else NVML's level of what they have in common, up to FAR. `mig`: it is divided into
    slices. `busy`: others use it.
    """

    index: int
    name: str
    total_bytes: int
    free_bytes: int
    capability: card.Capability | None = None
    cores: tuple[int, ...] = ()
    distances: tuple[tuple[int, int], ...] = ()
    mig: bool = False
    busy: bool = False

    def distance(self, index: int) -> int:
        return next((distance for other, distance in self.distances if other == index), FAR)

    @property
    def abilities(self) -> str:
        """Its compute capability and what follows from that; "-" where it is unknown."""
        if self.capability is None:
            return "-"
        return f"{self.capability[0]}.{self.capability[1]}: {card.abilities(self.capability)}"

    def as_record(self) -> dict[str, object]:
        """The GPU as plain JSON values, for the history."""
        capability = {"capability": ".".join(map(str, self.capability))} if self.capability else {}
        return {"name": self.name, "total_bytes": self.total_bytes, **capability}


@dataclass(frozen=True)
class Machine:
    """Processor, memory and GPUs. `native_bf16`: the processor multiplies bfloat16 itself; `driver`: the
    version of the GPUs' driver."""

    cpu: str
    cores: tuple[int, ...]
    native_bf16: bool
    memory_bytes: int
    gpus: tuple[Gpu, ...]
    driver: str | None = None

    def as_record(self) -> dict[str, object]:
        """The machine as plain JSON values, for the history."""
        return {
            "cpu": self.cpu,
            "cores": len(self.cores),
            "native_bf16": self.native_bf16,
            "memory_bytes": self.memory_bytes,
            "gpus": [gpu.as_record() for gpu in self.gpus],
            **({"driver": self.driver} if self.driver else {}),
            "system": platform.platform(),
        }


@dataclass(frozen=True)
class Placement:
    """Where one engine runs: CPU cores or GPU indices. `sharing`: how many engines share its GPUs, itself too.

    Of an engine on GPUs, `cores` are those near them; empty: any. `contended` stays true unless the sides were
    shown not to slow each other.
    """

    device: str
    cores: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    sharing: int = 1
    contended: bool = True

    def __str__(self) -> str:
        numbers = self.cores if self.device == "cpu" else self.gpus
        return f"{self.device.upper()} {ranges(numbers)}"


def machine() -> Machine:
    """Read from the system now; a machine without NVML has no GPUs."""
    cpu, flags = _cpu()
    return Machine(
        cpu=cpu,
        cores=tuple(sorted(os.sched_getaffinity(0))),
        native_bf16=bool({"avx512_bf16", "amx_bf16", "bf16"} & flags),
        memory_bytes=psutil.virtual_memory().total,
        gpus=_gpus(),
        driver=_driver(),
    )


def identity() -> dict[str, object]:
    """Which machine this is, and which GPUs are in it, where points of several are kept beside each other."""
    nvml, uuids = opened(), list[str]()
    if nvml is not None:
        try:
            handles = map(nvml.nvmlDeviceGetHandleByIndex, _visible(nvml.nvmlDeviceGetCount()))
            uuids = [_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
        except nvml.NVMLError:
            logger.exception("NVML knows of GPUs but can't name them")
    return {"node": platform.node() or "-", **({"gpu_uuids": uuids} if uuids else {})}


def ranges(numbers: Sequence[int]) -> str:
    """0,1,2,5 -> "0-2,5"."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ",".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)


def _cpu() -> tuple[str, set[str]]:
    name, flags = platform.processor() or platform.machine(), set[str]()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = set(value.split())
    except OSError:
        pass
    return name, flags


def _gpus() -> tuple[Gpu, ...]:
    nvml = opened()
    if nvml is None:
        return ()
    try:
        handles = {index: nvml.nvmlDeviceGetHandleByIndex(index) for index in _visible(nvml.nvmlDeviceGetCount())}
        ours = own_processes() if handles else frozenset[int]()
        return tuple(_gpu(nvml, index, handles, ours) for index in handles)
    except nvml.NVMLError:
        logger.exception("NVML knows of GPUs but can't describe them")
        return ()


def _driver() -> str | None:
    nvml = opened()
    if nvml is None:
        return None
    try:
        return _text(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    """Older libraries give bytes."""
    return value if isinstance(value, str) else value.decode()


def _visible(count: int) -> list[int]:
    """The indices that this process may use: NVML itself ignores CUDA_VISIBLE_DEVICES."""
    limited = os.environ.get("CUDA_VISIBLE_DEVICES")
    if limited is None:
        return list(range(count))
    return [int(item) for item in limited.split(",") if item.strip().isdigit() and int(item) < count]


def _gpu(nvml: ModuleType, index: int, handles: Mapping[int, Any], ours: frozenset[int]) -> Gpu:
    handle = handles[index]
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)

    def known(reading: Callable[[], ValueT], otherwise: ValueT) -> ValueT:
        """What the card supports."""
        try:
            return reading()
        except nvml.NVMLError:
            return otherwise

    def distance(other: Any) -> int:
        if known(lambda: nvml.nvmlDeviceGetP2PStatus(handle, other, NVLINK), -1) == nvml.NVML_P2P_STATUS_OK:
            return 0
        return known(lambda: int(nvml.nvmlDeviceGetTopologyCommonAncestor(handle, other)), FAR)

    words = (os.cpu_count() or 1) // 64 + 1
    near: list[int] = known(lambda: list(nvml.nvmlDeviceGetCpuAffinity(handle, words)), [])
    used: set[int] = known(lambda: {item.pid for item in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}, set())
    return Gpu(
        index,
        _text(nvml.nvmlDeviceGetName(handle)),
        int(memory.total),
        int(memory.free),
        (int(major), int(minor)),
        cores=tuple(core for core in range(64 * len(near)) if near[core // 64] >> (core % 64) & 1),
        distances=tuple((other, distance(handles[other])) for other in handles if other != index),
        mig=bool(known(lambda: nvml.nvmlDeviceGetMigMode(handle)[0], 0)),
        # Engines of this process are no others: a run that comes again finds its cards as they were.
        busy=not used & ours and memory.used > BUSY_SHARE * memory.total,
    )
