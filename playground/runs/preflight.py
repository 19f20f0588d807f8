"""Before anything starts: will each engine fit its device, alone and beside the others, and will its pair work."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from . import model_facts
from .config import Config
from .domain import fit, pair
from .domain.concerns import Concern
from .domain.errors import PlaygroundError
from .domain.memory import GIB, Device, Need, need
from .domain.pair import Abilities, Pair, Partner
from .domain.records import Problem, Run
from .domain.settings import EngineSettings
from .domain.workload import Sampling
from .engine import command, devices, runtime
from .engine.devices import Machine, Placement
from .engine.runtime import Runtime

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SideCheck:
    """What is known of one side before it starts. `need` None: its memory can't be known; `memory` says why."""

    label: str
    device: Device | None
    need: Need | None
    memory: tuple[Concern, ...]
    pair: Pair | None

    @property
    def fits(self) -> bool | None:
        """None: unknown."""
        if self.need is None:
            return None
        return not any(concern.level == "blocking" for concern in self.memory)

    @property
    def hopeless(self) -> Problem | None:
        """Why it is certain that this side cannot work."""
        return next((each.problem for each in self.concerns if each.certain), None)

    @property
    def concerns(self) -> tuple[Concern, ...]:
        return (*self.memory, *(self.pair.concerns if self.pair else ()))


@dataclass(frozen=True)
class Engine:
    """One of the host's own sides, and where it will run."""

    label: str
    settings: EngineSettings
    runtime: Runtime
    placement: Placement


def examine(config: Config, run: Run) -> list[SideCheck]:
    """Of every side of a run that has not started. Blocking: reads files, asks the hub for what is not here.

    Raises InvalidInput where a side wants more GPUs than there are, WorkFailed where a runtime has no vLLM.
    """
    own = {side.label: side.settings for side in run.sides if isinstance(side.settings, EngineSettings)}
    probed = {name: runtime.probe(config, name) for name in {settings.runtime for settings in own.values()}}
    runtimes = [probed[settings.runtime] for settings in own.values()]
    host = devices.machine()
    placements = devices.place(
        list(own.values()), [each.device for each in runtimes], host, in_turns=run.mode == "measured"
    )
    engines = [Engine(*each) for each in zip(own, own.values(), runtimes, placements, strict=True)]
    checked = {check.label: check for check in assess(config, engines, host, run.workload.sampling)}
    return [checked.get(side.label) or _attached(side.label) for side in run.sides]


def assess(config: Config, engines: Sequence[Engine], host: Machine, sampling: Sampling) -> list[SideCheck]:
    """The same where it is known already what runs where. Engines start in this order."""
    facts: dict[str, Partner | Problem] = {}
    drafted = {
        name for each in engines if each.settings.draft for name in (each.settings.target, each.settings.draft)
    }
    for name in {name for each in engines for name in (each.settings.target, each.settings.draft) if name}:
        try:
            facts[name] = model_facts.read(config, name, tokens=name in drafted)
        except PlaygroundError as error:
            facts[name] = error.as_problem()
        except Exception as error:
            logger.exception("%s could not be read", name)
            facts[name] = _unreadable(name, error)
    checks: list[SideCheck] = []
    for engine in engines:
        before = [
            check.need
            for other, check in zip(engines, checks, strict=False)
            if check.need is not None and _meet(engine.placement, other.placement)
        ]
        sharing = sum(_meet(engine.placement, other.placement) for other in engines)
        place = fit.Place(
            _device(config, engine.placement, host), sharing, _splits(facts[engine.settings.target], host)
        )
        try:
            check = _check(engine, facts, place, before, sampling, host)
        except Exception as error:
            logger.exception("%s could not be checked before its start", engine.label)
            names = ", ".join(name for name in (engine.settings.target, engine.settings.draft) if name)
            concern = Concern(_unreadable(names, error), "unknown")
            check = SideCheck(engine.label, place.device, None, (concern,), None)
        checks.append(check)
    return checks


def _unreadable(name: str, error: Exception) -> Problem:
    """A model that is odd in a way nobody thought of must not keep a run from starting: vLLM says what it is."""
    return Problem("preflight.unreadable", {"name": name, "detail": str(error).split("\n")[0]})


def _check(
    engine: Engine,
    facts: dict[str, Partner | Problem],
    place: fit.Place,
    before: Sequence[Need],
    sampling: Sampling,
    host: Machine,
) -> SideCheck:
    settings = engine.settings
    target, why = _known(facts, settings.target)
    draft, why_draft = _known(facts, settings.draft) if settings.draft else (None, None)
    abilities = Abilities(
        engine.runtime.version,
        engine.runtime.device,
        engine.runtime.heterogeneous_vocab,
        engine.runtime.arctic_inference,
    )
    checked = pair.check(settings, target, draft, abilities, sampling)
    if reason := why or why_draft:
        return SideCheck(engine.label, place.device, None, (Concern(reason, "unknown"),), checked)
    model, draft_model = target.model, draft.model if draft else None
    assert model is not None

    def need_of(changed: EngineSettings) -> Need | None:
        its_draft = draft_model if changed.draft else None
        effective = command.effective(changed, engine.placement, host.native_bf16)
        return need(effective, model, its_draft, place.device)

    models = (model, draft_model) if draft_model else (model,)
    memory = fit.concerns(settings, models, place, need_of, before)
    return SideCheck(engine.label, place.device, need_of(settings), tuple(memory), checked)


def _known(facts: dict[str, Partner | Problem], name: str) -> tuple[Partner, Problem | None]:
    found = facts[name]
    if isinstance(found, Problem):
        return Partner(None, None), found
    if found.model is None:
        return found, Problem("preflight.unknown_shape", {"name": name})
    return found, None


def _splits(target: Partner | Problem, host: Machine) -> tuple[int, ...]:
    """Over how many of the host's GPUs vLLM can split the target: a power of two that divides its heads."""
    if isinstance(target, Problem) or target.model is None:
        return ()
    heads = target.model.shape.heads
    return tuple(size for size in (2, 4, 8) if size <= len(host.gpus) and heads % size == 0)


def _meet(one: Placement, other: Placement) -> bool:
    """Whether two engines take from the same memory."""
    return one.device == other.device and (one.device == "cpu" or bool(set(one.gpus) & set(other.gpus)))


def _device(config: Config, placement: Placement, host: Machine) -> Device:
    """Of several GPUs the one with the least memory."""
    if placement.device == "cpu":
        free = psutil.virtual_memory().available
        return Device("cpu", host.cpu, host.memory_bytes, free, config.cpu_kv_gib * GIB)
    gpu = min((gpu for gpu in host.gpus if gpu.index in placement.gpus), key=lambda gpu: gpu.total_bytes)
    return Device("cuda", f"{gpu.name} ({placement})", gpu.total_bytes, gpu.free_bytes)


def _attached(label: str) -> SideCheck:
    return SideCheck(label, None, None, (Concern(Problem("preflight.attached"), "note"),), None)
