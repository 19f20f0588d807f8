"""The machine's processor, memory and GPUs, and which of them each side gets."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import psutil

from playground.domain.errors import InvalidInput
from playground.domain.fit import card
from playground.domain.spec.settings import EngineSettings

from .nvml import opened

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU as NVML reports it; memory in bytes. `capability`: its compute capability, as (9, 0)."""

    index: int
    name: str
    total_bytes: int
    free_bytes: int
    capability: card.Capability | None = None

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

    `contended` stays true unless the sides were shown not to slow each other.
    """

    device: str
    cores: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    sharing: int = 1
    contended: bool = True

    def __str__(self) -> str:
        numbers = self.cores if self.device == "cpu" else self.gpus
        return f"{self.device.upper()} {_ranges(numbers)}"


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


def place(
    sides: Sequence[EngineSettings], devices: Sequence[str], host: Machine, *, in_turns: bool = False
) -> list[Placement]:
    """A core set for each CPU side; for each GPU side the GPUs that the fewest others use, so none if possible.

    Where sides serve in turns nothing contends, and every CPU side gets the same cores: all but the first, which
    is left to the page and to the measuring process. Raises InvalidInput if one side alone needs more GPUs, or on
    a CPU more cores, than there are.
    """
    on_cpu = [index for index, device in enumerate(devices) if device == "cpu"]
    placements: dict[int, Placement] = {}
    for position, index in enumerate(on_cpu):
        if (processes := sides[index].gpus) > len(host.cores):
            raise InvalidInput("settings.too_many_processes", wanted=processes, available=len(host.cores))
        cores = host.cores[1:] or host.cores if in_turns else _share(host.cores, position, len(on_cpu))
        placements[index] = Placement("cpu", cores=cores, contended=not in_turns)
    users = {gpu.index: 0 for gpu in host.gpus}
    chosen: dict[int, tuple[int, ...]] = {}
    for index, side in enumerate(sides):
        if index in placements:
            continue
        if side.gpus > len(users):
            raise InvalidInput("settings.too_many_gpus", wanted=side.gpus, available=len(users))
        chosen[index] = tuple(sorted(sorted(users, key=lambda gpu: users[gpu])[: side.gpus]))
        for gpu in chosen[index]:
            users[gpu] += 1
    for index, gpus in chosen.items():
        sharing = max(users[gpu] for gpu in gpus)
        placements[index] = Placement("cuda", gpus=gpus, sharing=sharing, contended=sharing > 1 and not in_turns)
    return [placements[index] for index in range(len(sides))]


def _share(cores: tuple[int, ...], position: int, parts: int) -> tuple[int, ...]:
    """An equal, contiguous part of the cores; all of them where there are fewer cores than sides."""
    size = len(cores) // parts
    return cores[position * size : (position + 1) * size] if size else cores


def _ranges(numbers: Sequence[int]) -> str:
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
        return tuple(_gpu(nvml, index) for index in _visible(nvml.nvmlDeviceGetCount()))
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


def _gpu(nvml: ModuleType, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    name = _text(nvml.nvmlDeviceGetName(handle))
    return Gpu(index, name, int(memory.total), int(memory.free), (int(major), int(minor)))
