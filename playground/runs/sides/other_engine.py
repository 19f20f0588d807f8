"""Sides whose engine is not vLLM: what is known before their start, and how they are started."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.fit.issue import FitIssue
from playground.domain.fit.kv_cache import kv_bytes, kv_element_bytes
from playground.domain.fit.memory import GIB, engine_dtype
from playground.domain.message import Message
from playground.domain.spec.settings import EngineSettings
from playground.engine import command
from playground.engine.command import Command
from playground.engine.devices import Machine
from playground.engine.kinds.kind import HOST, Kind, Launch
from playground.models import fetch, folders, gguf, inspection
from playground.models.fetch import FetchProgress
from playground.workers import RUNS

from .placement import PlannedEngine


def issues(config: Config, kind: Kind, settings: EngineSettings) -> tuple[FitIssue, ...]:
    """What can be said before a start: whether its models are there, and that its memory is not known."""
    check = gguf.check_name if kind.gguf else folders.check_name
    absent = list[Message]()
    for name in filter(None, (settings.target, settings.draft)):
        try:
            check(config, name)
        except InvalidInput as error:
            absent.append(error.as_message())
    if absent:
        return tuple(FitIssue(problem, "blocking", certain=True) for problem in absent)
    return (FitIssue(Message("preflight.other_engine", {"engine": kind.title}), "note"),)


async def build(
    config: Config, engine: PlannedEngine, host: Machine, on_progress: Callable[[FetchProgress], None]
) -> Command:
    """The engine's command, once its models are on this machine. Raises InvalidInput, ModelUnavailable."""
    runtime, settings = engine.runtime, engine.settings
    kind, program = runtime.kind, runtime.program
    assert kind is not None
    assert program is not None
    effective = command.effective(settings, engine.placement, host.native_bf16, kind.knobs.keys())

    async def path(name: str) -> Path:
        if kind.gguf:
            return await gguf.ensure(config, name, on_progress)
        return await fetch.ensure(config, name, runtime.python, on_progress)

    target = await path(settings.target)
    draft = await path(settings.draft) if settings.draft else None
    launch = Launch(
        settings=effective,
        program=program,
        target=str(target),
        draft=str(draft) if draft else None,
        port=_free_port(),
        cores=len(engine.placement.cores or host.cores),
        kv_tokens=await RUNS.run(_kv_tokens, config, effective),
    )
    return command.build_other(kind, launch, engine.placement)


def _kv_tokens(config: Config, settings: EngineSettings) -> int | None:
    """How many tokens' keys and values the host lets an engine on a CPU keep; None where the model's shape is not
    known."""
    try:
        model = inspection.read(config, settings.target, tokens=False, ask_hub=False).model
    except PlaygroundError:
        return None
    if model is None:
        return None
    element = kv_element_bytes(None, engine_dtype(settings, model.shape))
    return config.cpu_kv_gib * GIB // max(1, kv_bytes(model.shape, 1, element, batched=1))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
        return port
