"""From a run's settings to what serves its sides: models, placement, engines."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import models
from .config import Config
from .domain.errors import EngineFailed, InvalidInput
from .domain.records import Counters, Problem, Run
from .domain.settings import EngineSettings
from .engine import command, devices, runtime, telemetry
from .engine.pool import Pool, Wanted
from .engine.server import Engine
from .live import Live, Progress
from .load.endpoint import Endpoint
from .tokens import token_text

SETTLE_S = 3.0


@dataclass(frozen=True)
class Serving:
    """What answers for one side."""

    endpoint: Endpoint
    engine: Engine

    async def counters(self) -> Counters | None:
        """Now; None where they can't be read."""
        return await telemetry.read_counters(self.engine.client)

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


def check(config: Config, run: Run) -> None:
    """Raises InvalidInput for what this host does not allow. Nothing has started then."""
    labels = Counter(side.label for side in run.sides)
    if (twice := labels.most_common(1)) and twice[0][1] > 1:
        raise InvalidInput("settings.same_label", label=twice[0][0])
    for side in run.sides:
        settings = side.settings
        if settings.extra_flags and not config.extra_flags:
            raise InvalidInput("settings.extra_flags_off", side=side.label)
        if settings.trust_remote_code and not config.trust_remote_code:
            raise InvalidInput("settings.remote_code_off", side=side.label)
        runtime.interpreter(config, settings.runtime)
        for name in (settings.target, settings.draft):
            if name:
                models.check_allowed(config, name)


async def prepare(config: Config, pool: Pool, live: Live) -> list[Serving]:
    """One for each side, in order. Raises EngineFailed if one did not start; the others live on."""
    live.phase = "preparing"
    sides, in_turns = live.run.sides, live.run.mode == "measured"
    host = await asyncio.to_thread(devices.machine)
    live.run.machine = host.as_record()
    for progress in live.progress:
        progress.advance("runtime")
    names = {side.settings.runtime for side in sides}
    probed = {name: await asyncio.to_thread(runtime.probe, config, name) for name in names}
    runtimes = [probed[side.settings.runtime] for side in sides]
    placements = devices.place(
        [side.settings for side in sides], [r.device for r in runtimes], host, in_turns=in_turns
    )
    wanted: list[Wanted] = []
    seen: Counter[str] = Counter()
    for side, its_runtime, placement, progress in zip(sides, runtimes, placements, live.progress, strict=True):
        target = await _model(config, side.settings.target, its_runtime.python, progress)
        draft = side.settings.draft and await _model(config, side.settings.draft, its_runtime.python, progress)
        name = _engine_name(side.settings, its_runtime, placement)
        seen[name] += 1
        # Two equal sides in one place (an A/A check) are two engines all the same.
        name = f"{name}{seen[name]}"
        built = command.build(
            side.settings,
            its_runtime,
            placement,
            target=target,
            draft=draft or None,
            uds=Wanted.socket(config, name),
            native_bf16=host.native_bf16,
            cpu_kv_gib=config.cpu_kv_gib,
        )
        wanted.append(Wanted(name, built, placement))
        side.command, side.placement, side.contended = str(built), str(placement), placement.contended
        side.runtime_version, side.device = its_runtime.version, its_runtime.device
        progress.advance("waiting")
    live.phase = "starting"
    engines = await _started(pool, live, wanted)
    return [Serving(Endpoint(command.SERVED_NAME, uds=str(engine.uds)), engine) for engine in engines]


async def _model(config: Config, name: str, python: Path, progress: Progress) -> Path:
    folder = await models.ensure(
        config, name, python, lambda step: progress.advance(f"model_{step.stage}", step.fraction)
    )
    # Reading a tokenizer takes a second: now, not when the first tokens want to be painted.
    await asyncio.to_thread(token_text, folder)
    return folder


async def _started(pool: Pool, live: Live, wanted: list[Wanted]) -> list[Engine]:
    outcomes = await pool.provide(wanted, lambda index, stage: live.progress[index].advance(stage))
    engines: list[Engine] = []
    for side, progress, outcome in zip(live.run.sides, live.progress, outcomes, strict=True):
        if isinstance(outcome, EngineFailed):
            progress.advance("failed")
            side.problem = Problem(outcome.message_id, outcome.params)
            side.log_tail = outcome.log_tail
            live.run.problem = live.run.problem or Problem(
                "run.side_failed", {"side": side.label, "cause": side.problem}
            )
        else:
            progress.ready_after_s = outcome.ready_after_s
            engines.append(outcome)
    if live.run.problem is not None:
        raise next(outcome for outcome in outcomes if isinstance(outcome, EngineFailed))
    return engines


def _engine_name(settings: EngineSettings, its_runtime: runtime.Runtime, placement: devices.Placement) -> str:
    text = (
        f"{settings.model_dump_json()}|{its_runtime.python}|{its_runtime.version}|{placement}|{placement.sharing}"
    )
    return hashlib.sha256(text.encode()).hexdigest()[:10]
