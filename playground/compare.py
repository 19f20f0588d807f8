"""One comparison, from settings to a stored run: models, engines, streams, counters.

A `Comparison` runs as a task of its own. Pages and the command line only read it: `run` grows as things happen,
and `sides` tell how each engine's start goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from . import models
from .config import Config
from .domain.errors import EngineFailed, InvalidInput, PlaygroundError
from .domain.records import Counters, Problem, Run, Sample, SideRecord, Status
from .domain.settings import EngineSettings
from .domain.workload import Sampling, Workload
from .engine import command, devices, runtime, telemetry
from .engine.pool import Pool, Wanted
from .engine.server import Engine
from .load.client import Load
from .load.endpoint import Endpoint
from .presets import Side
from .store import History
from .tokens import token_text

logger = logging.getLogger(__name__)

SAMPLE_INTERVAL_S = 0.5
SETTLE_S = 3.0
DEATH_S = 5.0
WARM_UP_TOKENS = 16


@dataclass
class Progress:
    """How one side's start goes. `stage` is a message id's last part under `stage.`; `since` is monotonic."""

    stage: str = "waiting"
    since: float = 0.0
    fraction: float | None = None
    ready_after_s: float | None = None

    def advance(self, stage: str, fraction: float | None = None) -> None:
        if stage != self.stage:
            self.since = time.monotonic()
        self.stage, self.fraction = stage, fraction


def new_run_id(now: datetime) -> str:
    """Sorts by time, and can be said over the phone."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


class Comparison:
    """A race: one prompt to all sides at once."""

    def __init__(
        self,
        config: Config,
        pool: Pool,
        history: History,
        sides: Sequence[Side],
        workload: Workload,
        preset: str | None = None,
    ) -> None:
        now = datetime.now().astimezone()
        self.run = Run(
            id=new_run_id(now),
            created_at=now.isoformat(timespec="seconds"),
            mode="race",
            workload=workload,
            preset=preset,
            sides=[SideRecord(side.label, side.engine) for side in sides],
            seed=workload.sampling.seed,
        )
        self.progress = [Progress(since=time.monotonic()) for _ in sides]
        self.phase = "waiting"
        self.streaming_since: float | None = None
        self._config = config
        self._pool = pool
        self._history = history
        self._load: Load | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def finished(self) -> bool:
        return self.run.status != "running"

    def check(self) -> None:
        """Raises InvalidInput for what this host does not allow. Nothing has started then."""
        for side in self.run.sides:
            settings = side.settings
            if settings.extra_flags and not self._config.extra_flags:
                raise InvalidInput("settings.extra_flags_off", side=side.label)
            if settings.trust_remote_code and not self._config.trust_remote_code:
                raise InvalidInput("settings.remote_code_off", side=side.label)
            runtime.interpreter(self._config, settings.runtime)
            for name in (settings.target, settings.draft):
                if name:
                    models.check_allowed(self._config, name)

    async def execute(self) -> None:
        """Run it to its end, under the pool's lease; then `run.status` and `problem` tell how it went."""
        status: Status = "failed"
        try:
            await asyncio.to_thread(self._history.begin, self.run)
            if not self._stopping:
                self._task = asyncio.current_task()
                await self._race(await self._engines())
            status = "stopped" if self._stopping else "done"
        except asyncio.CancelledError:
            status = "stopped"
            if not self._stopping:
                raise
        except Exception as error:
            # The edge of the application: nothing a run does may take the page down with it.
            logger.exception("run %s failed", self.run.id)
            self.run.problem = self.run.problem or self._problem_of(error)
        finally:
            try:
                # Written first, told afterwards: who sees a finished run finds it in the history.
                await asyncio.shield(self._finish(replace(self.run, status=status)))
            finally:
                self.run.status, self.phase = status, "finished"

    async def _finish(self, run: Run) -> None:
        try:
            await asyncio.to_thread(self._history.finish, run)
        except Exception:
            logger.exception("run %s could not be saved", run.id)
            self.run.problem = self.run.problem or Problem("run.not_saved", {"run": run.id})

    def refuse(self, error: Exception) -> None:
        """It never ran, most likely because somebody else holds the engines."""
        self.run.problem = self._problem_of(error)
        self.run.status, self.phase = "failed", "finished"

    def _problem_of(self, error: Exception) -> Problem:
        if isinstance(error, PlaygroundError):
            return Problem(error.message_id, error.params)
        if isinstance(error, subprocess.CalledProcessError):
            return Problem("run.driver_died", {"run": self.run.id})
        return Problem("run.internal", {"run": self.run.id})

    def stop(self) -> None:
        """End it now and keep what arrived: the streams if they run, else whatever is being prepared."""
        if self._stopping:
            return
        self._stopping = True
        if self._task is None:
            # Still in line, or just begun: there is nothing to end yet.
            self.run.status, self.phase = "stopped", "finished"
        elif self._load is not None:
            self._load.stop()
        else:
            self._task.cancel()

    # Preparing

    async def _engines(self) -> list[Engine]:
        self.phase = "preparing"
        config, sides = self._config, self.run.sides
        host = await asyncio.to_thread(devices.machine)
        self.run.machine = host.as_record()
        for progress in self.progress:
            progress.advance("runtime")
        names = {side.settings.runtime for side in sides}
        probed = {name: await asyncio.to_thread(runtime.probe, config, name) for name in names}
        runtimes = [probed[side.settings.runtime] for side in sides]
        placements = devices.place([side.settings for side in sides], [r.device for r in runtimes], host)
        wanted: list[Wanted] = []
        seen: Counter[str] = Counter()
        for side, its_runtime, placement, progress in zip(sides, runtimes, placements, self.progress, strict=True):
            target = await self._model(side.settings.target, its_runtime.python, progress)
            draft = side.settings.draft and await self._model(side.settings.draft, its_runtime.python, progress)
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
        self.phase = "starting"
        return await self._started(wanted)

    async def _model(self, name: str, python: Path, progress: Progress) -> Path:
        folder = await models.ensure(
            self._config, name, python, lambda step: progress.advance(f"model_{step.stage}", step.fraction)
        )
        # Reading a tokenizer takes a second: now, not when the first tokens want to be painted.
        await asyncio.to_thread(token_text, folder)
        return folder

    async def _started(self, wanted: list[Wanted]) -> list[Engine]:
        outcomes = await self._pool.provide(wanted, lambda index, stage: self.progress[index].advance(stage))
        engines: list[Engine] = []
        for side, progress, outcome in zip(self.run.sides, self.progress, outcomes, strict=True):
            if isinstance(outcome, EngineFailed):
                progress.advance("failed")
                side.problem = Problem(outcome.message_id, outcome.params)
                side.log_tail = outcome.log_tail
                self.run.problem = self.run.problem or Problem(
                    "run.side_failed", {"side": side.label, "cause": side.problem}
                )
            else:
                progress.ready_after_s = outcome.ready_after_s
                engines.append(outcome)
        if self.run.problem is not None:
            raise next(outcome for outcome in outcomes if isinstance(outcome, EngineFailed))
        return engines

    async def _warm_up(self, engines: list[Engine]) -> None:
        """A new engine's first request pays for what is compiled on first use: it must not be the one on show."""
        if all(engine.warm for engine in engines):
            return
        cold = [engine for engine in engines if not engine.warm]
        sampling = self.run.workload.sampling.model_copy(update={"max_tokens": WARM_UP_TOKENS, "ignore_eos": True})
        load = self._new_load(cold, sampling)
        for progress, engine in zip(self.progress, engines, strict=True):
            if not engine.warm:
                progress.advance("first_request")
        async with contextlib.aclosing(load.run()) as grown:
            async for _ in grown:
                pass
        for progress, engine in zip(self.progress, engines, strict=True):
            engine.warm = True
            progress.advance("ready")

    # Streaming

    def _new_load(self, engines: Sequence[Engine], sampling: Sampling) -> Load:
        """Salted, so that no prompt is found in the prefix cache, unless that cache is what is compared."""
        caching = {side.settings.knobs.enable_prefix_caching for side in self.run.sides}
        return Load(
            [Endpoint(command.SERVED_NAME, uds=str(engine.uds)) for engine in engines],
            self.run.workload.conversation,
            sampling,
            self._config.request_timeout_s,
            salted=len(caching) == 1,
        )

    async def _race(self, engines: list[Engine]) -> None:
        sides = self.run.sides
        await self._warm_up(engines)
        load = self._new_load(engines, self.run.workload.sampling)
        for side, trace, engine in zip(sides, load.traces, engines, strict=True):
            side.requests = [trace]
            side.before = await _idle_counters(engine)
        self.phase = "streaming"
        self.streaming_since = time.monotonic()
        sampler = asyncio.create_task(self._sample(engines))
        self._load = load
        if self._stopping:
            load.stop()
        try:
            async for index in load.run():
                if load.traces[index].ended:
                    await self._explain(index, engines[index])
                    await asyncio.to_thread(self._history.save_request, self.run.id, index, 0, load.traces[index])
        finally:
            sampler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sampler
        for side, engine in zip(sides, engines, strict=True):
            side.after = await _idle_counters(engine)
        if self.run.problem is None and all(trace.problem for trace in load.traces) and not self._stopping:
            self.run.problem = load.traces[0].problem
            raise PlaygroundError("run.all_failed")

    async def _explain(self, index: int, engine: Engine) -> None:
        """A stream that broke because its engine died: say why the engine died."""
        side = self.run.sides[index]
        problem = side.requests[0].problem
        if problem is None or problem.message_id not in ("stream.cut", "stream.connect", "stream.engine"):
            return
        if (failure := await engine.failure(DEATH_S)) is not None:
            side.problem = Problem(failure.message_id, failure.params)
            side.log_tail = failure.log_tail

    async def _sample(self, engines: list[Engine]) -> None:
        """The counters of each engine about twice a second, until cancelled."""
        start = time.monotonic()
        while True:
            found = await asyncio.gather(*(telemetry.read_counters(engine.client) for engine in engines))
            at = (time.monotonic() - start) * 1000
            for side, counters in zip(self.run.sides, found, strict=True):
                if counters is not None:
                    side.samples.append(Sample(at, counters))
            await asyncio.sleep(SAMPLE_INTERVAL_S)


async def _idle_counters(engine: Engine) -> Counters | None:
    """Counters once nothing runs or waits; None if the engine does not come to rest (they would be incomplete)."""
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        counters = await telemetry.read_counters(engine.client)
        if counters is None:
            return None
        if counters.idle:
            return counters
        await asyncio.sleep(0.05)
    return None


def _engine_name(settings: EngineSettings, its_runtime: runtime.Runtime, placement: devices.Placement) -> str:
    text = (
        f"{settings.model_dump_json()}|{its_runtime.python}|{its_runtime.version}|{placement}|{placement.sharing}"
    )
    return hashlib.sha256(text.encode()).hexdigest()[:10]
