"""From a run's settings to what serves its sides: models, placement, engines."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from playground.config import Config
from playground.domain.errors import EngineFailed, InvalidInput, PlaygroundError, WorkFailed
from playground.domain.message import Message
from playground.domain.record.counters import Counters
from playground.domain.record.run import Run
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings, SideSettings
from playground.engine import command, devices, gpu_load, runtime, telemetry
from playground.engine.pool import EngineRequest, Pool
from playground.engine.server import Engine
from playground.load.capabilities import probe
from playground.load.endpoint import Endpoint
from playground.models import folders
from playground.models.tokenizer import token_text

from . import preflight
from .live import Live, RunProgress

SETTLE_S = 3.0


@dataclass(frozen=True)
class ServedSide:
    """What answers for one side. Without an engine somebody else runs it: it is asked, never watched or mended."""

    endpoint: Endpoint
    engine: Engine | None = None

    @property
    def warm(self) -> bool:
        """Whether it has answered before. An attached endpoint did when it was probed."""
        return self.engine is None or self.engine.warm

    def note_warm(self) -> None:
        if self.engine is not None:
            self.engine.warm = True

    async def counters(self) -> Counters | None:
        """Now; None where they can't be read. Those of an attached endpoint count other people's requests too."""
        return await telemetry.read_counters(self.engine.client) if self.engine is not None else None

    async def sample(self) -> Counters | None:
        """The counters, and how busy the engine's GPUs are, if it has any."""
        counters = await self.counters()
        if counters is None or self.engine is None or not self.engine.placement.gpus:
            return counters
        load = await asyncio.to_thread(gpu_load.read, self.engine.placement.gpus)
        if load is None:
            return counters
        return replace(counters, gpu_utilization=load.utilization, gpu_memory_bytes=load.memory_bytes)

    async def idle_counters(self) -> Counters | None:
        """Once nothing runs or waits; None if the engine does not come to rest (they would be incomplete)."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            counters = await self.counters()
            if counters is None:
                return None
            if counters.idle:
                return counters
            await asyncio.sleep(0.05)
        return None

    async def failure(self, within_s: float) -> EngineFailed | None:
        """What killed the engine, if it is dead or dies within that time."""
        return await self.engine.failure(within_s) if self.engine is not None else None


def check(config: Config, run: Run) -> None:
    """Raises InvalidInput for what this host does not allow. Nothing has started then."""
    labels = Counter(side.label for side in run.sides)
    if (twice := labels.most_common(1)) and twice[0][1] > 1:
        raise InvalidInput("settings.same_label", side=twice[0][0], key="label", label=twice[0][0])
    for side in run.sides:
        settings = side.settings
        if isinstance(settings, AttachedEndpoint):
            _endpoint(config, settings)
            continue
        if settings.extra_flags and not config.extra_flags:
            raise InvalidInput("settings.extra_flags_off", side=side.label, key="extra_flags")
        if settings.trust_remote_code and not config.trust_remote_code:
            raise InvalidInput("settings.remote_code_off", side=side.label, key="trust_remote_code")
        runtime.interpreter(config, settings.runtime)
        for name in (settings.target, settings.draft):
            if name:
                folders.check_allowed(config, name)


def check_runtimes(config: Config, sides: Iterable[tuple[str, SideSettings]]) -> None:
    """Raises InvalidInput for what a side's runtime lacks; sides come with their labels. Takes an import of vLLM
    the first time."""
    own = [(label, settings) for label, settings in sides if isinstance(settings, EngineSettings)]
    probed = {name: runtime.probe(config, name) for name in {settings.runtime for _, settings in own}}
    for label, settings in own:
        command.check(settings, probed[settings.runtime], label)


async def prepare(config: Config, pool: Pool, live: Live) -> list[ServedSide]:
    """One for each side, in order. Raises EngineFailed if one did not start; the others live on."""
    live.phase = "preparing"
    host = await asyncio.to_thread(devices.machine)
    live.run.machine = host.as_record()
    # Endpoints first: whether one answers shows in a second, and an engine takes minutes.
    served_sides = {
        index: await _attach(config, live, index, side.settings)
        for index, side in enumerate(live.run.sides)
        if isinstance(side.settings, AttachedEndpoint)
    }
    served_sides |= await _start(config, pool, live, host)
    _note_contention(live.run)
    return [served_sides[index] for index in range(len(live.run.sides))]


def _endpoint(config: Config, settings: AttachedEndpoint) -> Endpoint:
    return Endpoint.attached(config, settings.base_url, settings.model, settings.api)


async def _attach(config: Config, live: Live, index: int, settings: AttachedEndpoint) -> ServedSide:
    side, progress, workload = live.run.sides[index], live.progress[index], live.run.workload
    progress.advance("probing")
    endpoint = _endpoint(config, settings)
    side.placement, side.contended = f"attached {endpoint.url}", False
    try:
        endpoint = endpoint.knowing(await probe(endpoint, workload.sampling))
    except WorkFailed as error:
        _blame(live, index, error)
        raise
    side.missing = endpoint.capabilities.missing
    side.command = endpoint.as_curl(endpoint.body(workload.conversation, workload.sampling))
    progress.advance("ready")
    return ServedSide(endpoint)


def _note_contention(run: Run) -> None:
    """In a race, an endpoint on this machine shares it with every other side there, and one server with itself."""
    if run.mode == "measured":
        return
    hosts = Counter(side.settings.url.host for side in run.sides if isinstance(side.settings, AttachedEndpoint))
    local = any(side.settings.url.is_loopback for side in run.sides if isinstance(side.settings, AttachedEndpoint))
    for side in run.sides:
        if not isinstance(side.settings, AttachedEndpoint):
            side.contended = side.contended or local
        elif side.settings.url.is_loopback or hosts[side.settings.url.host] > 1:
            side.contended = True


async def _start(config: Config, pool: Pool, live: Live, host: devices.Machine) -> dict[int, ServedSide]:
    """The engines of this host's own sides, by the side's index."""
    own = {
        index: (side, side.settings)
        for index, side in enumerate(live.run.sides)
        if isinstance(side.settings, EngineSettings)
    }
    for index in own:
        live.progress[index].advance("runtime")
    names = {settings.runtime for _, settings in own.values()}
    probed = {name: await asyncio.to_thread(runtime.probe, config, name) for name in names}
    runtimes = [probed[settings.runtime] for _, settings in own.values()]
    with _blaming(live, max(own, key=lambda index: own[index][1].gpus, default=0)):
        placements = devices.place(
            [settings for _, settings in own.values()],
            [its_runtime.device for its_runtime in runtimes],
            host,
            in_turns=live.run.mode == "measured",
        )
    engines = {
        index: preflight.PlannedEngine(side.label, settings, its_runtime, placement)
        for (index, (side, settings)), its_runtime, placement in zip(
            own.items(), runtimes, placements, strict=True
        )
    }
    await _refuse_hopeless(config, live, engines, host)
    wanted: list[EngineRequest] = []
    seen: Counter[str] = Counter()
    for (index, (side, settings)), its_runtime, placement in zip(own.items(), runtimes, placements, strict=True):
        progress = live.progress[index]
        name = _engine_name(settings, its_runtime, placement)
        seen[name] += 1
        # Two equal sides in one place (an A/A check) are two engines all the same.
        name = f"{name}{seen[name]}"
        with _blaming(live, index):
            target = await _model(config, settings.target, its_runtime.python, progress)
            draft = settings.draft and await _model(config, settings.draft, its_runtime.python, progress)
            built = command.build(
                settings,
                its_runtime,
                placement,
                target=target,
                draft=draft or None,
                uds=EngineRequest.socket(config, name),
                native_bf16=host.native_bf16,
                cpu_kv_gib=config.cpu_kv_gib,
            )
        wanted.append(EngineRequest(name, built, placement))
        side.command, side.placement, side.contended = str(built), str(placement), placement.contended
        side.runtime_version, side.device = its_runtime.version, its_runtime.device
        progress.advance("waiting")
    live.phase = "starting"
    started = await _started(pool, live, list(own), wanted)
    return {
        index: ServedSide(Endpoint(command.SERVED_NAME, uds=str(engine.uds)), engine)
        for index, engine in zip(own, started, strict=True)
    }


async def _refuse_hopeless(
    config: Config, live: Live, engines: dict[int, preflight.PlannedEngine], host: devices.Machine
) -> None:
    """Before a model is fetched or an engine is touched. Raises InvalidInput."""
    sampling = live.run.workload.sampling
    checks = await asyncio.to_thread(preflight.assess, config, list(engines.values()), host, sampling)
    for index, check in zip(engines, checks, strict=True):
        if (hopeless := check.hopeless) is not None:
            with _blaming(live, index):
                raise InvalidInput(hopeless.message_id, **hopeless.params)


def _blame(live: Live, index: int, error: PlaygroundError) -> None:
    """Why the run can't go on is this side's affair: its pane says so, and what to change there."""
    side, progress = live.run.sides[index], live.progress[index]
    progress.advance("failed")
    side.problem = error.as_message()
    side.log_tail = error.log_tail if isinstance(error, EngineFailed) else []
    cause = {"side": side.label, "cause": side.problem}
    live.run.problem = live.run.problem or Message("run.side_failed", cause)


@contextmanager
def _blaming(live: Live, index: int) -> Iterator[None]:
    try:
        yield
    except PlaygroundError as error:
        _blame(live, index, error)
        raise


async def _model(config: Config, name: str, python: Path, progress: RunProgress) -> Path:
    folder = await folders.ensure(
        config, name, python, lambda step: progress.advance(f"model_{step.stage}", step.fraction)
    )
    # Reading a tokenizer takes a second: now, not when the first tokens want to be painted.
    await asyncio.to_thread(token_text, folder)
    return folder


async def _started(pool: Pool, live: Live, indices: Sequence[int], wanted: list[EngineRequest]) -> list[Engine]:
    reused = {want.name for want in wanted if pool.live(want)}
    outcomes = await pool.provide(wanted, lambda number, stage: live.progress[indices[number]].advance(stage))
    engines: list[Engine] = []
    for index, want, outcome in zip(indices, wanted, outcomes, strict=True):
        side, progress = live.run.sides[index], live.progress[index]
        if isinstance(outcome, EngineFailed):
            _blame(live, index, outcome)
        else:
            progress.ready_after_s = outcome.ready_after_s
            side.ready_after_s = None if want.name in reused else outcome.ready_after_s
            engines.append(outcome)
    if live.run.problem is not None:
        raise next(outcome for outcome in outcomes if isinstance(outcome, EngineFailed))
    return engines


def _engine_name(settings: EngineSettings, its_runtime: runtime.Runtime, placement: devices.Placement) -> str:
    text = (
        f"{settings.model_dump_json()}|{its_runtime.python}|{its_runtime.version}|{placement}|{placement.sharing}"
    )
    return hashlib.sha256(text.encode()).hexdigest()[:10]
