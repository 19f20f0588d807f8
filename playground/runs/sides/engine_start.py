"""From a run's settings to what serves its sides: fetches models, probes endpoints, starts engines."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from playground.config import Config
from playground.domain.errors import EngineFailed, InvalidInput, PlaygroundError
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings
from playground.engine import caches, command, devices
from playground.engine.devices import Machine
from playground.engine.kinds.kind import HOST
from playground.engine.pool import EngineRequest, Pool
from playground.engine.server import Engine
from playground.load.capabilities import probe
from playground.load.endpoint import Endpoint
from playground.models.fetch import FetchProgress, ensure
from playground.models.tokenizer import token_text
from playground.runs.live import Live, RunProgress
from playground.workers import RUNS

from . import kv_room, other_engine, placement, preflight
from .placement import PlannedEngine
from .preflight import SideCheck
from .served_side import ServedSide


async def prepare(config: Config, pool: Pool, live: Live) -> list[ServedSide]:
    """What serves each side, in order. Raises EngineFailed if one did not start; those that are ready stay up."""
    live.phase = "preparing"
    host = await RUNS.run(devices.machine)
    live.run.machine = host.as_record()
    # Endpoints first: probing one takes a second, and starting an engine takes minutes.
    served_sides = {
        index: await _attach(config, live, index, side.settings)
        for index, side in enumerate(live.run.sides)
        if isinstance(side.settings, AttachedEndpoint)
    }
    engines = await _start(pool, live, await _requests(config, live, host))
    for index, engine in engines.items():
        served_sides[index] = await _served(live, index, engine)
    _note_contention(live.run)
    return [served_sides[index] for index in range(len(live.run.sides))]


async def _served(live: Live, index: int, engine: Engine) -> ServedSide:
    """The engine's endpoint, with what it understands: vLLM does all of it, another is asked."""
    name, port = engine.command.answers_to, engine.command.port
    if engine.command.kind is None:
        return ServedSide(Endpoint(name, uds=str(engine.uds)), engine)
    side = live.run.sides[index]
    live.progress[index].advance("probing")
    endpoint = Endpoint(name, host=HOST, port=port)
    with _blaming(live, index):
        endpoint = endpoint.knowing(await probe(endpoint, live.run.workload.sampling))
    side.missing, side.command = endpoint.capabilities.missing, str(engine.command)
    live.progress[index].advance("ready")
    return ServedSide(endpoint, engine)


async def _attach(config: Config, live: Live, index: int, settings: AttachedEndpoint) -> ServedSide:
    side, progress, workload = live.run.sides[index], live.progress[index], live.run.workload
    progress.advance("probing")
    endpoint = placement.attached(config, settings)
    side.placement, side.contended = f"attached {endpoint.url}", False
    with _blaming(live, index):
        endpoint = endpoint.knowing(await probe(endpoint, workload.sampling))
    side.missing, side.token_prices = endpoint.capabilities.missing, config.prices_at(settings.url)
    side.command = endpoint.as_curl(endpoint.body(workload.conversation, workload.sampling))
    progress.advance("ready")
    return ServedSide(endpoint)


def _note_contention(run: Run) -> None:
    """In a race, an endpoint on this machine contends with every other side there, and two sides of one server do,
    too."""
    if run.mode == "measured":
        return
    hosts = Counter(side.settings.url.host for side in run.sides if isinstance(side.settings, AttachedEndpoint))
    local = any(side.settings.url.is_loopback for side in run.sides if isinstance(side.settings, AttachedEndpoint))
    for side in run.sides:
        if not isinstance(side.settings, AttachedEndpoint):
            side.contended = side.contended or local
        elif side.settings.url.is_loopback or hosts[side.settings.url.host] > 1:
            side.contended = True


async def _requests(config: Config, live: Live, host: Machine) -> dict[int, EngineRequest]:
    """The engines that the pool is to provide, by the index of the side."""
    engines = await _planned(config, live, host)
    checks = await _checked(config, live, engines, host)
    sizes = dict(zip(engines, kv_room.equal(list(engines.values()), checks), strict=True))
    requests: dict[int, EngineRequest] = {}
    names: Counter[str] = Counter()
    for index, engine in engines.items():
        name = _engine_name(engine, sizes[index])
        names[name] += 1
        with _blaming(live, index):
            # Two equal sides in one place (an A/A check) still get two engines.
            requests[index] = await _request(
                config, f"{name}{names[name]}", engine, sizes[index], live.progress[index], host
            )
        side = live.run.sides[index]
        side.command, side.placement = str(requests[index].command), str(engine.placement)
        side.contended = engine.placement.contended
        side.runtime_version, side.device = engine.runtime.version or None, engine.runtime.device
        live.progress[index].advance("waiting")
    return requests


async def _planned(config: Config, live: Live, host: Machine) -> dict[int, PlannedEngine]:
    sides = live.run.sides
    gpus = {i: side.settings.gpus for i, side in enumerate(sides) if isinstance(side.settings, EngineSettings)}
    for index in gpus:
        live.progress[index].advance("runtime")
    runtimes = await RUNS.run(placement.runtimes, config, [side.settings for side in sides])
    # A side that can't be placed needs more GPUs than there are.
    with _blaming(live, max(gpus, key=lambda index: gpus[index], default=0)):
        return placement.engines(live.run, runtimes, host)


async def _checked(
    config: Config, live: Live, engines: Mapping[int, PlannedEngine], host: Machine
) -> list[SideCheck]:
    """Called before a model is fetched or an engine started. Raises InvalidInput where a side can't work, having
    recorded that of each that can't."""
    sampling = live.run.workload.sampling
    checks = await RUNS.run(preflight.assess, config, list(engines.values()), host, sampling)
    refusals = {
        index: InvalidInput(check.hopeless.message_id, **check.hopeless.params)
        for index, check in zip(engines, checks, strict=True)
        if check.hopeless is not None
    }
    for index, refusal in refusals.items():
        _blame(live, index, refusal)
    if refusals:
        raise next(iter(refusals.values()))
    return checks


async def _request(
    config: Config, name: str, engine: PlannedEngine, kv_bytes: int | None, progress: RunProgress, host: Machine
) -> EngineRequest:
    settings, python = engine.settings, engine.runtime.python
    if engine.runtime.kind is not None:
        advance = partial(_advance_fetch, progress)
        return EngineRequest(name, await other_engine.build(config, engine, host, advance), engine.placement)
    target = await _model(config, settings.target, python, progress)
    draft = await _model(config, settings.draft, python, progress) if settings.draft else None
    built = command.build(
        settings,
        engine.runtime,
        engine.placement,
        target=target,
        draft=draft,
        uds=EngineRequest.socket(config, name),
        native_bf16=host.native_bf16,
        cpu_kv_gib=config.cpu_kv_gib,
        kv_bytes=kv_bytes,
    )
    built = replace(built, kept=caches.variables(engine.runtime))
    sized = kv_bytes is not None or settings.knobs.kv_cache_memory_bytes is not None
    return EngineRequest(name, built, engine.placement, sized)


async def _model(config: Config, name: str, python: Path, progress: RunProgress) -> Path:
    folder = await ensure(config, name, python, partial(_advance_fetch, progress))
    # Reading a tokenizer takes a second: better now than when the first tokens are to be painted.
    await RUNS.run(token_text, folder)
    return folder


def _advance_fetch(progress: RunProgress, step: FetchProgress) -> None:
    progress.advance(f"model_{step.stage}", step.fraction)


async def _start(pool: Pool, live: Live, requests: Mapping[int, EngineRequest]) -> dict[int, Engine]:
    """The engines, by the index of the side. Raises EngineFailed if one did not start."""
    live.phase, live.starting_since = "starting", time.monotonic()
    indices, ordered = list(requests), list(requests.values())
    reused = {request.name for request in ordered if pool.live(request)}
    outcomes = await pool.provide(ordered, lambda number, stage: live.progress[indices[number]].advance(stage))
    live.starts_s = time.monotonic() - live.starting_since
    engines: dict[int, Engine] = {}
    for index, request, outcome in zip(indices, ordered, outcomes, strict=True):
        side, progress = live.run.sides[index], live.progress[index]
        if isinstance(outcome, EngineFailed):
            _blame(live, index, outcome)
        elif outcome is None:
            progress.advance("given_up")
        else:
            progress.ready_after_s = outcome.ready_after_s
            if request.name not in reused:
                side.ready_after_s, side.start = outcome.ready_after_s, outcome.stages
            side.path = outcome.path
            engines[index] = outcome
    if live.run.problem is not None:
        raise next(outcome for outcome in outcomes if isinstance(outcome, EngineFailed))
    return engines


@contextmanager
def _blaming(live: Live, index: int) -> Iterator[None]:
    """An error in the block is recorded as a problem of this side."""
    try:
        yield
    except PlaygroundError as error:
        _blame(live, index, error)
        raise


def _blame(live: Live, index: int, error: PlaygroundError) -> None:
    """Record that the run can't go on because of this side: its pane says why, and what to change there."""
    side, progress = live.run.sides[index], live.progress[index]
    progress.advance("failed")
    side.problem = error.as_message()
    side.log_tail = error.log_tail if isinstance(error, EngineFailed) else []
    cause = {"side": side.label, "cause": side.problem}
    live.run.problem = live.run.problem or Message("run.side_failed", cause)


def _engine_name(engine: PlannedEngine, kv_bytes: int | None) -> str:
    """Equal for engines that can stand in for each other."""
    settings, runtime, placement = engine.settings, engine.runtime, engine.placement
    where = f"{runtime.python}|{runtime.version}|{placement}|{placement.sharing}|{kv_bytes}"
    text = f"{settings.model_dump_json()}|{where}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]
