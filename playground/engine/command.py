"""Settings -> argv and environment for the version of vLLM that will run them. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..domain.errors import InvalidInput
from ..domain.memory import SHARED_UTILIZATION
from ..domain.settings import EngineSettings, Frozen, Knobs
from .devices import Placement
from .runtime import Runtime

SERVED_NAME = "playground"
PER_STEP_FLAG = "--per-request-spec-decode-metrics"

Knob = int | float | bool | str


@dataclass(frozen=True)
class Command:
    """What to run. `added` holds only the environment variables that this engine needs beyond its parent's."""

    argv: tuple[str, ...]
    added: Mapping[str, str]

    def __str__(self) -> str:
        """As one would type it."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.added.items()]
        return " ".join([*variables, shlex.join(self.argv)])


def build(
    settings: EngineSettings,
    runtime: Runtime,
    placement: Placement,
    *,
    target: Path | str,
    draft: Path | str | None,
    uds: Path,
    native_bf16: bool,
    cpu_kv_gib: int,
) -> Command:
    """Raises InvalidInput for a knob that this runtime does not have."""
    argv = [str(runtime.python), "-m", runtime.entry_point]
    argv += ["--model", str(target), "--served-model-name", SERVED_NAME]
    # The host is given although a Unix socket is served: the default binds every interface.
    argv += ["--host", "127.0.0.1", "--uds", str(uds)]
    if settings.speculates and runtime.knows(PER_STEP_FLAG):
        argv += [PER_STEP_FLAG, "detailed"]
    knobs = effective(settings, placement, native_bf16).knobs.overrides()
    for flag in map(_flag, knobs):
        if not runtime.knows(flag):
            raise InvalidInput("settings.flag_missing", flag=flag, version=runtime.version)
    argv += arguments(settings, knobs, draft, runtime.knows)
    return Command(tuple(argv), _environment(runtime, placement, settings, cpu_kv_gib))


def arguments(
    settings: EngineSettings,
    knobs: Mapping[str, Knob],
    draft: Path | str | None,
    knows: Callable[[str], bool] = lambda flag: True,
) -> list[str]:
    """What makes an engine the one that was asked for, whoever starts it: nothing of where it listens."""
    argv = [word for name, value in knobs.items() for word in _words(name, value, knows)]
    if settings.speculates:
        argv += ["--speculative-config", json.dumps(speculative_config(settings.speculation, draft))]
    if settings.trust_remote_code:
        argv.append("--trust-remote-code")
    return [*argv, *settings.extra_flags]


def speculative_config(speculation: Frozen, draft: Path | str | None) -> dict[str, object]:
    """The JSON of --speculative-config: only what was set, with the draft as a path that the engine can open."""
    given = speculation.model_dump(exclude_none=True, mode="json")
    return {**given, "model": str(draft)} if draft is not None else given


def effective(settings: EngineSettings, placement: Placement, native_bf16: bool) -> EngineSettings:
    """With what depends on the place where it is not set: precision on a CPU, its share of a shared GPU."""
    knobs = settings.knobs.overrides()
    if placement.device == "cpu" and "dtype" not in knobs and not native_bf16:
        knobs["dtype"] = "float32"
    if placement.sharing > 1 and not {"gpu_memory_utilization", "kv_cache_memory_bytes"} & knobs.keys():
        knobs["gpu_memory_utilization"] = round(SHARED_UTILIZATION / placement.sharing, 2)
    return settings.model_copy(update={"knobs": Knobs.model_validate(knobs)})


def _flag(knob: str) -> str:
    return "--" + knob.replace("_", "-")


def _words(knob: str, value: Knob, knows: Callable[[str], bool]) -> list[str]:
    flag = _flag(knob)
    if value is True:
        return [flag]
    if value is False:
        # vLLM offers --no-X for each of its switches; a switch without it is off when absent.
        negative = "--no-" + flag.removeprefix("--")
        return [negative] if knows(negative) else []
    return [flag, str(value)]


def _environment(
    runtime: Runtime, placement: Placement, settings: EngineSettings, cpu_kv_gib: int
) -> dict[str, str]:
    if placement.device != "cpu":
        # NVML counts by bus; CUDA by speed, unless told otherwise.
        gpus = ",".join(map(str, placement.gpus))
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": gpus}
    added = {"VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, placement.cores))}
    if settings.knobs.kv_cache_memory_bytes is None:
        # Unset, the first engine takes half of the memory and the second finds none.
        added["VLLM_CPU_KVCACHE_SPACE"] = str(cpu_kv_gib)
    if runtime.openmp is not None:
        added["LD_PRELOAD"] = str(runtime.openmp)
    return added
