"""Settings -> argv and environment for the version of vLLM that will run them. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from playground.domain.errors import InvalidInput
from playground.domain.fit.memory import SHARED_UTILIZATION
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS

from . import flags
from .devices import Placement
from .kinds.kind import SERVED_NAME, Kind, Launch
from .runtime import Runtime

SPECULATION_FLAG = "--speculative-config"
# A newer option than the JSON one; its choices are the methods that a version has.
METHOD_FLAG = "--spec-method"
PER_STEP_FLAG = "--per-request-spec-decode-metrics"

KnobValue = int | float | bool | str


@dataclass(frozen=True)
class Command:
    """An engine's command. `added` holds only the environment variables that it needs beyond its parent's; `kept`
    those that let it start from what earlier starts left, and change nothing of what it serves. `answers_to`: the
    model's name in requests. `kind` and `port` are None for vLLM, which listens on a Unix socket."""

    argv: tuple[str, ...]
    added: Mapping[str, str]
    kept: Mapping[str, str] = field(default_factory=dict)
    answers_to: str = SERVED_NAME
    kind: Kind | None = None
    port: int | None = None

    def __str__(self) -> str:
        """The command as it is typed in a shell."""
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
    kv_bytes: int | None = None,
) -> Command:
    """The command for settings that were checked against this runtime. `kv_bytes`: the size of its KV cache, where
    that follows from the engines beside it."""
    options = [["--model", str(target)], ["--served-model-name", SERVED_NAME]]
    # The host is given although a Unix socket is served: the default binds every interface.
    options += [["--host", "127.0.0.1"], ["--uds", str(uds)]]
    if settings.speculates and runtime.knows(PER_STEP_FLAG):
        options.append([PER_STEP_FLAG, "detailed"])
    knobs = effective(settings, placement, native_bf16).knobs.options
    if kv_bytes is not None:
        knobs["kv_cache_memory_bytes"] = kv_bytes
    options += arguments(settings, knobs, draft, runtime.knows)
    words = [word for option in options for word in flags.joined(option)]
    argv = (str(runtime.python), "-m", runtime.entry_point, *words)
    return Command(argv, _environment(runtime, placement, settings, cpu_kv_gib))


def build_other(kind: Kind, launch: Launch, placement: Placement) -> Command:
    """The command of an engine that is not vLLM, for settings that were checked."""
    added = {"HF_HUB_OFFLINE": "1"}
    if placement.device == "cpu":
        added["OMP_NUM_THREADS"] = str(launch.cores)
    else:
        added |= _visible(placement)
    argv = kind.argv(launch)
    return Command(argv, added, answers_to=kind.answers_to(launch), kind=kind, port=launch.port)


def arguments(
    settings: EngineSettings,
    knobs: Mapping[str, KnobValue],
    draft: Path | str | None,
    knows: Callable[[str], bool] = lambda flag: True,
) -> list[list[str]]:
    """The options that follow from the settings, each with its values, without those that say where the engine
    listens."""
    options = [_words(name, value, knows) for name, value in knobs.items()]
    if settings.speculates:
        config = settings.speculation.config(None if draft is None else str(draft))
        options.append([SPECULATION_FLAG, json.dumps(config)])
    if settings.trust_remote_code:
        options.append(["--trust-remote-code"])
    return [*filter(None, options), *flags.options(settings.extra_flags)]


def check(settings: EngineSettings, runtime: Runtime, side: str) -> None:
    """Raises InvalidInput for a knob, a value, a method or an extra flag that this runtime does not have: which,
    and what does its job there; and for an extra flag that only the playground may set."""
    if runtime.kind is not None:
        runtime.kind.check(settings, side)
        return
    where = {"side": side, "version": runtime.version}
    for name, value in settings.knobs.options.items():
        flags.check_known(runtime, _flag_of(name), f"knobs.{name}", where)
        accepted = runtime.choices.get(_flag_of(name))
        if accepted and str(value) not in accepted:
            raise InvalidInput(
                "settings.choice_missing", **where, key=f"knobs.{name}", value=value, accepted=", ".join(accepted)
            )
    if settings.speculates:
        flags.check_known(runtime, SPECULATION_FLAG, "speculation.method", where)
        method, known = settings.speculation.method, runtime.choices.get(METHOD_FLAG)
        if known and method not in known:
            accepted = tuple(name for name in SPECULATION_METHODS if name in known)
            key = "speculation.method"
            raise InvalidInput(
                "settings.choice_missing", **where, key=key, value=method, accepted=", ".join(accepted)
            )
        if runtime.device == "cpu" and settings.synthetic:
            raise InvalidInput("settings.no_synthetic", **where, key="speculation.rejection_sample_method")
    flags.check_extra(settings.extra_flags, runtime, where, speculates=settings.speculates is True)


def effective(
    settings: EngineSettings, placement: Placement, native_bf16: bool, knows: Container[str] = Knobs.model_fields
) -> EngineSettings:
    """The settings with defaults that depend on the placement: dtype on a CPU, the share of a shared GPU; those of
    them that the engine `knows`."""
    knobs = settings.knobs.overrides()
    if placement.device == "cpu" and "dtype" not in knobs and "dtype" in knows and not native_bf16:
        knobs["dtype"] = "float32"
    # Also where the KV cache has a size: vLLM does not start where less than its share is free.
    share = "gpu_memory_utilization"
    if placement.sharing > 1 and share not in knobs and share in knows:
        knobs[share] = round(SHARED_UTILIZATION / placement.sharing, 2)
    return settings.model_copy(update={"knobs": Knobs.model_validate(knobs)})


def _flag_of(knob: str) -> str:
    return "--" + knob.replace("_", "-")


def _words(knob: str, value: KnobValue, knows: Callable[[str], bool]) -> list[str]:
    flag = _flag_of(knob)
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
    added = settings.knobs.variables
    if placement.device != "cpu":
        return {**_visible(placement), **added}
    added["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, placement.cores))
    if settings.knobs.kv_cache_memory_bytes is None:
        # Unset, the first engine takes half of the memory and the second finds none.
        added["VLLM_CPU_KVCACHE_SPACE"] = str(cpu_kv_gib)
    if runtime.openmp is not None:
        added["LD_PRELOAD"] = str(runtime.openmp)
    return added


def _visible(placement: Placement) -> dict[str, str]:
    # NVML counts by bus; CUDA by speed, unless told otherwise.
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, placement.gpus))}
