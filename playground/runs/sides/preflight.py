"""Checks before anything starts: will each engine fit its device, alone and beside the others, and will its pair
work."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import psutil

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.fit import engine_fit, pair
from playground.domain.fit.issue import FitIssue
from playground.domain.fit.memory import GIB, Device, Need, need
from playground.domain.fit.pair import Abilities, Pair, Partner
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Sampling
from playground.engine import command, devices
from playground.engine.devices import Machine, Placement
from playground.models import folders, inspection

from . import other_engine, placement
from .placement import PlannedEngine

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SideCheck:
    """What is known of one side before it starts. `need` is None if its memory can't be known; `memory` then says
    why. `understood`: nothing in its models' shapes may make more of it."""

    label: str
    device: Device | None
    need: Need | None
    memory: tuple[FitIssue, ...]
    pair: Pair | None
    understood: bool = False
    placement: Placement | None = None

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None: unknown."""
        if self.need is None:
            return False if self.absent else None
        return not any(issue.level == "blocking" for issue in self.memory)

    @property
    def absent(self) -> bool:
        """Whether a model is not there, so that nothing else can be said."""
        return self.need is None and any(issue.certain for issue in self.memory)

    @property
    def hopeless(self) -> Message | None:
        """All reasons why it is certain that this side cannot work."""
        certain = [issue.problem for issue in self.issues if issue.certain]
        if not certain:
            return None
        return reduce(lambda first, second: Message("preflight.both", {"first": first, "second": second}), certain)

    @property
    def issues(self) -> tuple[FitIssue, ...]:
        """All issues. The pair's come first, since more memory solves none of them."""
        return (*(self.pair.issues if self.pair else ()), *self.memory)


def examine(config: Config, run: Run, *, ask_hub: bool = True) -> list[SideCheck]:
    """Check every side of a run that has not started. Blocking: reads files, and asks the hub for those that are
    not here.

    Raises InvalidInput where a side needs more GPUs than there are, WorkFailed where a runtime has no vLLM.
    """
    probed = placement.runtimes(config, [side.settings for side in run.sides])
    host = devices.machine()
    engines = placement.engines(run, probed, host)
    planned = list(engines.values())
    assessed = assess(config, planned, host, run.workload.sampling, ask_hub=ask_hub)
    checks = dict(zip(engines, assessed, strict=True))
    return [checks.get(index) or _attached(side.label) for index, side in enumerate(run.sides)]


def assess(
    config: Config, engines: Sequence[PlannedEngine], host: Machine, sampling: Sampling, *, ask_hub: bool = True
) -> list[SideCheck]:
    """Check engines whose placement is known already. Engines start in this order."""
    facts: dict[str, Partner | Message] = {}
    absent: dict[str, Message] = {}
    drafted = {
        name
        for engine in engines
        if engine.settings.draft and engine.runtime.kind is None
        for name in (engine.settings.target, engine.settings.draft)
    }
    vllms = [engine.settings for engine in engines if engine.runtime.kind is None]
    for name in {name for settings in vllms for name in (settings.target, settings.draft) if name}:
        try:
            folders.check_name(config, name)
            facts[name] = inspection.read(config, name, tokens=name in drafted, ask_hub=ask_hub)
        except InvalidInput as error:
            facts[name] = absent[name] = error.as_message()
        except PlaygroundError as error:
            facts[name] = error.as_message()
        except Exception as error:
            logger.exception("%s could not be read", name)
            facts[name] = _unreadable(name, error)
    checks: list[SideCheck] = []
    for engine in engines:
        if (kind := engine.runtime.kind) is not None:
            others = other_engine.issues(config, kind, engine.settings)
            device = _device(config, engine.placement, host)
            checks.append(SideCheck(engine.label, device, None, others, None, placement=engine.placement))
            continue
        before = [
            check.need
            for other, check in zip(engines, checks, strict=False)
            if check.need is not None and _share_memory(engine.placement, other.placement)
        ]
        sharing = sum(_share_memory(engine.placement, other.placement) for other in engines)
        place = engine_fit.DeviceRoom(
            _device(config, engine.placement, host), sharing, _splits(facts[engine.settings.target], host)
        )
        try:
            models = (engine.settings.target, engine.settings.draft)
            issues = tuple(
                FitIssue(absent[name], "blocking", certain=True) for name in models if name and name in absent
            )
            if issues:
                check = SideCheck(engine.label, place.device, None, issues, None)
            else:
                check = _check(engine, facts, place, before, sampling, host)
        except Exception as error:
            logger.exception("%s could not be checked before its start", engine.label)
            names = ", ".join(name for name in (engine.settings.target, engine.settings.draft) if name)
            issue = FitIssue(_unreadable(names, error), "unknown")
            check = SideCheck(engine.label, place.device, None, (issue,), None)
        checks.append(replace(check, placement=engine.placement))
    return checks


def _unreadable(name: str, error: Exception) -> Message:
    """An unexpected error while reading a model must not keep a run from starting: vLLM itself will report it."""
    return Message("preflight.unreadable", {"name": name, "detail": str(error).split("\n")[0]})


def _check(
    engine: PlannedEngine,
    facts: dict[str, Partner | Message],
    place: engine_fit.DeviceRoom,
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
        engine.runtime.schedules,
    )
    checked = pair.check(settings, target, draft, abilities, sampling)
    if reason := why or why_draft:
        return SideCheck(engine.label, place.device, None, (FitIssue(reason, "unknown"),), checked)
    model, draft_model = target.model, draft.model if draft else None
    assert model is not None

    def need_of(changed: EngineSettings) -> Need | None:
        its_draft = draft_model if changed.draft else None
        effective = command.effective(changed, engine.placement, host.native_bf16)
        return need(effective, model, its_draft, place.device)

    models = (model, draft_model) if draft_model else (model,)
    memory = engine_fit.issues(settings, models, place, need_of, before)
    understood = all(each.shape.understood and not each.shape.multimodal for each in models)
    return SideCheck(engine.label, place.device, need_of(settings), tuple(memory), checked, understood)


def _known(facts: dict[str, Partner | Message], name: str) -> tuple[Partner, Message | None]:
    partner = facts[name]
    if isinstance(partner, Message):
        return Partner(None, None), partner
    if partner.model is None:
        return partner, Message("preflight.unknown_shape", {"name": name})
    return partner, None


def _splits(target: Partner | Message, host: Machine) -> tuple[int, ...]:
    """Over how many of the host's GPUs vLLM can split the target: a power of two that divides its heads."""
    if isinstance(target, Message) or target.model is None:
        return ()
    heads = target.model.shape.heads
    return tuple(size for size in (2, 4, 8) if size <= len(host.gpus) and heads % size == 0)


def _share_memory(first: Placement, second: Placement) -> bool:
    """Whether two engines take from the same memory."""
    return first.device == second.device and (first.device == "cpu" or bool(set(first.gpus) & set(second.gpus)))


def _device(config: Config, placement: Placement, host: Machine) -> Device:
    """The device; of several GPUs the one with the least memory."""
    if placement.device == "cpu":
        free = psutil.virtual_memory().available
        return Device("cpu", host.cpu, host.memory_bytes, free, config.cpu_kv_gib * GIB)
    gpu = min((gpu for gpu in host.gpus if gpu.index in placement.gpus), key=lambda gpu: gpu.total_bytes)
    return Device("cuda", f"{gpu.name} ({placement})", gpu.total_bytes, gpu.free_bytes, capability=gpu.capability)


def _attached(label: str) -> SideCheck:
    return SideCheck(label, None, None, (FitIssue(Message("preflight.attached"), "note"),), None)
