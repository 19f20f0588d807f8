"""What one process of the playground shares among its visitors: configuration, engines, history, the live run."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime

import filelock

from playground import private_files
from playground.config import Config
from playground.domain.spec.case import Side
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Workload
from playground.domain.sweep.budget import Estimate
from playground.domain.sweep.record import Sweep
from playground.engine import runtime
from playground.engine.pool import Holder, Pool
from playground.store import History

from .comparison import Comparison
from .sweep import SweepRun, estimate

CLOSE_S = 5.0


class Host:
    """Opened inside the event loop that will use it, closed at the end.

    Raises InvalidInput if its state folder or its history can't be used.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        private_files.private_folder(config.state, "PLAYGROUND_STATE")
        private_files.check_space(config.state, "PLAYGROUND_STATE")
        self.history = History(config.db)
        self.pool = Pool(config)
        self.latest: Comparison | None = None
        self.latest_sweep: SweepRun | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, Comparison | SweepRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_watch: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Call once, in the event loop that will run everything: tidies up after a killed process, and watches for
        idleness."""
        if self.loop is not None:
            return
        self.loop = asyncio.get_running_loop()
        private_files.private_folder(self.config.state, "PLAYGROUND_STATE")
        # The process that holds this lock has a run that may still be going on.
        with (
            contextlib.suppress(filelock.Timeout),
            filelock.FileLock(self.config.state / "host.lock", timeout=0, mode=0o600),
        ):
            self.history.mark_interrupted()
            for leftover in self.config.state.glob("*.sock"):
                leftover.unlink(missing_ok=True)
        self._idle_watch = asyncio.create_task(self.pool.stop_when_idle())
        self._hold(self._idle_watch)

    async def close(self) -> None:
        """Stop the run and every engine."""
        under_way = [job for job in (self.latest_sweep, self.latest) if job is not None and not job.finished]
        for job in under_way:
            job.stop()
        if under_way:
            # They end by themselves first, so that what arrived so far is saved.
            await asyncio.wait([task for task in self._tasks if task is not self._idle_watch], timeout=CLOSE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.pool.stop_all()

    def comparison(
        self,
        sides: tuple[Side, ...],
        workload: Workload,
        measurement: Measurement | None = None,
        preset: str | None = None,
    ) -> Comparison:
        """A race, or a measured run; checked against what this host allows. Nothing has started yet."""
        comparison = Comparison(self.config, self.pool, self.history, sides, workload, measurement, preset)
        comparison.check()
        return comparison

    def sweep_run(self, sweep: Sweep) -> SweepRun:
        """A sweep, or what is left of one; checked against what this host allows. Nothing has started yet."""
        run = SweepRun(self.config, self.pool, self.history, sweep, self._device(sweep), self._show)
        run.check()
        return run

    def estimate(self, sweep: Sweep) -> Estimate:
        """The longest time that what is left of the sweep can take. Blocking: may probe a runtime."""
        return estimate(self.history, sweep, self._device(sweep))

    def _device(self, sweep: Sweep) -> str:
        names = [side.engine.runtime for side in sweep.case.sides if isinstance(side.engine, EngineSettings)]
        return runtime.probe(self.config, names[0]).device if names else "cpu"

    def _show(self, comparison: Comparison) -> None:
        self.latest = comparison

    async def start(self, job: Comparison | SweepRun, where: str, *, wait: bool = False) -> None:
        """Start it as a separate task, which outlives the page that started it. Raises HostBusy unless waiting,
        and InvalidInput for what a runtime lacks."""
        await asyncio.to_thread(job.check_runtimes)
        holder = Holder(job.title, where, datetime.now().strftime("%H:%M:%S"), job.id)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[job.id] = job
        self._hold(asyncio.create_task(self._execute(job, holder, wait, begun)))
        if not wait:
            await begun

    def followed(self, run_id: str) -> Comparison | None:
        """The comparison of that id, if it runs or waits here, or was the last to run."""
        last = self.latest
        job = last if last is not None and last.id == run_id else self._waiting.get(run_id)
        return job if isinstance(job, Comparison) else None

    def followed_sweep(self, sweep_id: str) -> SweepRun | None:
        """The sweep of that id, by the same rule."""
        last = self.latest_sweep
        job = last if last is not None and last.id == sweep_id else self._waiting.get(sweep_id)
        return job if isinstance(job, SweepRun) else None

    async def _execute(
        self, job: Comparison | SweepRun, holder: Holder, wait: bool, begun: asyncio.Future[None]
    ) -> None:
        try:
            async with self.pool.lease(holder, wait=wait):
                begun.set_result(None)
                # It may have been stopped while it waited in line.
                if not job.finished:
                    if isinstance(job, SweepRun):
                        self.latest_sweep = job
                    else:
                        self._show(job)
                    await job.execute()
        except Exception as error:
            if begun.done():
                raise
            job.refuse(error)
            begun.set_exception(error)
        finally:
            self._waiting.pop(job.id, None)

    def _hold(self, task: asyncio.Task[None]) -> None:
        """Keep a reference to the task, since the event loop has only a weak one."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
