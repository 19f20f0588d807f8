"""What one process of the playground shares among its visitors: configuration, engines, history, the live run."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime

import filelock

from .compare import Comparison
from .config import Config
from .domain.measurement import Measurement
from .domain.workload import Workload
from .engine.pool import Holder, Pool
from .presets import Side
from .store import History

CLOSE_S = 5.0


class Host:
    """Make one, `open` it inside the event loop that will use it, `close` it at the end."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.history = History(config.db)
        self.pool = Pool(config)
        self.latest: Comparison | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, Comparison] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_watch: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Once, in the event loop that will run everything: tidy up after a killed process, watch for idleness."""
        if self.loop is not None:
            return
        self.loop = asyncio.get_running_loop()
        self.config.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Whoever holds this lock has a run that may still be going on.
        with contextlib.suppress(filelock.Timeout), filelock.FileLock(self.config.state / "host.lock", timeout=0):
            self.history.mark_interrupted()
            for leftover in self.config.state.glob("*.sock"):
                leftover.unlink(missing_ok=True)
        self._idle_watch = asyncio.create_task(self.pool.stop_when_idle())
        self._keep(self._idle_watch)

    async def close(self) -> None:
        """Stop the run and every engine."""
        if self.latest is not None and not self.latest.finished:
            self.latest.stop()
            # Kindly first: what arrived so far is written down.
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
        made = Comparison(self.config, self.pool, self.history, sides, workload, measurement, preset)
        made.check()
        return made

    async def start(self, comparison: Comparison, where: str, *, wait: bool = False) -> None:
        """Start it as a task of its own, which outlives the page that asked. Raises HostBusy unless waiting, and
        InvalidInput for what a runtime does not have."""
        await asyncio.to_thread(comparison.check_runtimes)
        labels = " / ".join(side.label for side in comparison.run.sides)
        holder = Holder(labels, where, datetime.now().strftime("%H:%M:%S"), comparison.run.id)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[comparison.run.id] = comparison
        self._keep(asyncio.create_task(self._execute(comparison, holder, wait, begun)))
        if not wait:
            await begun

    def followed(self, run_id: str) -> Comparison | None:
        """The comparison of that id, if it runs or waits here, or was the last to run."""
        if self.latest is not None and self.latest.run.id == run_id:
            return self.latest
        return self._waiting.get(run_id)

    async def _execute(
        self, comparison: Comparison, holder: Holder, wait: bool, begun: asyncio.Future[None]
    ) -> None:
        try:
            async with self.pool.lease(holder, wait=wait):
                begun.set_result(None)
                # It may have been stopped while it waited in line.
                if not comparison.finished:
                    self.latest = comparison
                    await comparison.execute()
        except Exception as error:
            if begun.done():
                raise
            comparison.refuse(error)
            begun.set_exception(error)
        finally:
            self._waiting.pop(comparison.run.id, None)

    def _keep(self, task: asyncio.Task[None]) -> None:
        """The event loop holds tasks only weakly."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
