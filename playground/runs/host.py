"""What one process of the playground shares among its visitors: configuration, engines, history, the live run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import filelock

from playground import private_files, processes
from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError, WorkFailed
from playground.domain.record.run import Run
from playground.domain.spec.case import Case, Side
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Workload
from playground.domain.sweep.budget import Estimate
from playground.domain.sweep.record import Sweep
from playground.engine import devices, runtime
from playground.engine.pool import Holder, Pool
from playground.i18n import say_message
from playground.store import WRITERS, History
from playground.workers import FORMS

from .comparison import Comparison
from .elsewhere.place import Place
from .expected import Expected, expected
from .sweep import SweepRun, estimate

logger = logging.getLogger(__name__)

# How long the close waits for runs to end by themselves; for engines to end at SIGTERM; for what was killed.
JOBS_S, ENGINES_S, LAST_S = 1.5, 1.5, 0.3
# Seconds between batches of the search index, and between looks at whether there is anything to index.
INDEX_PAUSE_S, INDEX_INTERVAL_S = 0.2, 5.0
# Seconds until the watch for idle engines goes on after an error.
WATCH_AGAIN_S = 5.0
# Logs of engines that are kept for whoever looks for a cause: the latest.
MOST_LOGS = 20
# Runs and sweeps that could not be saved, of which the last are kept in memory.
MOST_UNSAVED = 5


class Host:
    """Opened inside the event loop that will use it, closed at the end.

    Raises InvalidInput if its state folder can't be used. A history that can't be used is only said, since runs go
    on without it.
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
        # The run under way and those that wait in line, by their ids.
        self._waiting: dict[str, Comparison | SweepRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._watches: tuple[asyncio.Task[None], ...] = ()
        self._tidied = False
        self._unsaved: dict[str, Comparison | SweepRun] = {}
        # How many runs and sweeps have ended since the start, by their status.
        self.ended: Counter[str] = Counter()

    def tidy_up(self) -> None:
        """Once, when the process starts: remove what a killed process left, and mark the runs that were cut off.
        Blocking. Raises InvalidInput or WorkFailed if the history can't be used; then its runs are marked before
        the next run."""
        private_files.private_folder(self.config.state, "PLAYGROUND_STATE")
        # The process that holds this lock has a run that may still be going on.
        lock = filelock.FileLock(self.config.state / "host.lock", timeout=0, mode=0o600)
        with contextlib.suppress(filelock.Timeout), lock:
            logs = sorted(self.config.state.glob("*.log"), key=lambda log: log.lstat().st_mtime)
            for leftover in (*self.config.state.glob("*.sock"), *logs[:-MOST_LOGS]):
                leftover.unlink(missing_ok=True)
        self._tidied = self.history.mark_interrupted(lock) is not None

    def open(self) -> None:
        """Call in the event loop that will run everything, at least once: watches for idleness, and keeps the
        search index."""
        if self.loop is not None:
            return
        self.loop = asyncio.get_running_loop()
        self._watches = (
            asyncio.create_task(self._stop_when_idle()),
            asyncio.create_task(self._keep_index()),
        )
        for watch in self._watches:
            self._hold(watch)

    async def _stop_when_idle(self) -> None:
        """Runs for ever, whatever fails in it: engines that nobody stops keep the memory of a machine."""
        while True:
            try:
                await self.pool.stop_when_idle()
            except Exception:
                logger.exception("engines could not be stopped when idle")
            await asyncio.sleep(WATCH_AGAIN_S)

    async def _keep_index(self) -> None:
        """Runs for ever. Pauses while a run is using the engines, which need the processor."""
        problem = ""
        while True:
            more = False
            if self.pool.holder is None:
                try:
                    more = await WRITERS.run(self._kept)
                    problem = ""
                except PlaygroundError as error:
                    if say_message(error) != problem:
                        problem = say_message(error)
                        logger.warning("the search index waits: %s", problem)
                except Exception:
                    logger.exception("the search index stands still")
                    return
            await asyncio.sleep(INDEX_PAUSE_S if more else INDEX_INTERVAL_S)

    def _kept(self) -> bool:
        """A batch of what is done to the history after runs have ended; whether there may be more."""
        history = self.history
        return history.index() or history.summarise() or history.purge()

    async def close(self) -> None:
        """Stop every run, and end every engine and helper: at most JOBS_S + ENGINES_S + 2 * LAST_S seconds."""
        for job in (self.latest_sweep, self.latest, *self._waiting.values()):
            if job is not None and not job.finished:
                job.stop()
        # They end by themselves first, so that what arrived so far is saved.
        await self._ended(JOBS_S)
        processes.ask_all_to_end()
        for task in self._tasks:
            task.cancel()
        await processes.end_all(ENGINES_S)
        await processes.end_all(LAST_S)
        if unended := await self._ended(LAST_S):
            logger.error("not ended at the close: %s", unended)
        self.pool.release()

    async def _ended(self, within_s: float) -> set[asyncio.Task[None]]:
        """Wait until all runs have ended; those that have not."""
        tasks = self._tasks.difference(self._watches)
        return (await asyncio.wait(tasks, timeout=within_s))[1] if tasks else set()

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

    def repetition(self, earlier: Run) -> Comparison:
        """The same again, with its settings, prompts and seed; checked likewise. `earlier` with all that was
        measured. Raises InvalidInput for a run that another tool measured."""
        if earlier.mode == "imported":
            raise InvalidInput("import.no_repeat", id=earlier.id)
        parts = (earlier.settings, earlier.workload, earlier.measurement, earlier.preset)
        comparison = Comparison(self.config, self.pool, self.history, *parts, earlier=earlier)
        comparison.check()
        return comparison

    def sweep_run(self, sweep: Sweep, places: Sequence[Place] = ()) -> SweepRun:
        """A sweep, or what is left of one; checked against what this host allows. Nothing has started yet.
        `places`: where to measure it instead of here."""
        device = "cuda" if places else self._device(sweep)
        run = SweepRun(self.config, self.pool, self.history, sweep, device, self._show, places)
        run.check()
        return run

    def estimate(self, sweep: Sweep) -> Estimate:
        """The longest time that what is left of the sweep can take. Blocking: may probe a runtime."""
        return estimate(self.history, sweep, self._device(sweep))

    def expected(self, case: Case) -> Expected:
        """How long a run of this will take, engine starts included. Blocking."""
        last = self.latest.run.settings if self.latest is not None and self.pool.engines else ()
        running = Counter(side.engine for side in last if isinstance(side.engine, EngineSettings))
        return expected(self.history, devices.machine(), case, running)

    def _device(self, sweep: Sweep) -> str:
        names = [side.engine.runtime for side in sweep.case.sides if isinstance(side.engine, EngineSettings)]
        return runtime.probe(self.config, names[0]).device if names else "cpu"

    def _show(self, comparison: Comparison) -> None:
        self.latest = comparison

    async def start(self, job: Comparison | SweepRun, where: str, *, wait: bool = False, owner: str = "") -> None:
        """Start it as a separate task, which outlives the page that started it; `owner`: see `may_stop`.

        Raises HostBusy unless waiting, WorkFailed if too many wait already, and InvalidInput for what a runtime
        lacks.
        """
        job.owner = owner
        await FORMS.run(job.check_runtimes)
        holder = Holder(job.title, where, datetime.now().strftime("%H:%M:%S"), job.id)
        if wait and len(self._waiting) > self.config.limits.waiting_runs:
            raise WorkFailed("host.waiting_line_full", waiting=self.config.limits.waiting_runs)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[job.id] = job
        self._hold(asyncio.create_task(self._execute(job, holder, wait, begun)))
        if not wait:
            await begun

    def may_change(self, saved_id: str, visitor: str) -> bool:
        """Whether this visitor may delete it, or add a star, tags and a note: by the same rule. Blocking."""
        return visitor in ("", self.history.owner(saved_id))

    @staticmethod
    def may_stop(job: Comparison | SweepRun, visitor: str) -> bool:
        """Whether this visitor may stop it: who started it, and the host, whose name is empty."""
        return visitor in ("", job.owner)

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

    @property
    def waiting(self) -> int:
        """How many runs and sweeps wait in line."""
        return sum(job is not self.latest and job is not self.latest_sweep for job in self._waiting.values())

    def unsaved(self) -> list[Comparison | SweepRun]:
        """The last runs and sweeps that could not be saved, newest first."""
        return list(reversed(self._unsaved.values()))

    def unsaved_record(self, saved_id: str) -> Run | Sweep | None:
        """The run or sweep of that id, if it is one of those or a point of one."""
        for job in self._unsaved.values():
            record = job.record
            runs = [point.run for point in record.points] if isinstance(record, Sweep) else []
            for saved in (record, *runs):
                if saved is not None and saved.id == saved_id:
                    return saved
        return None

    async def _execute(
        self, job: Comparison | SweepRun, holder: Holder, wait: bool, begun: asyncio.Future[None]
    ) -> None:
        try:
            async with self.pool.lease(holder, wait=wait):
                if not self._tidied:
                    await self._tidy_late()
                begun.set_result(None)
                # It may have been stopped while it waited in line.
                if not job.finished:
                    if isinstance(job, SweepRun):
                        self.latest_sweep = job
                    else:
                        self._show(job)
                    await job.execute()
                    self.ended[job.record.status] += 1
        except Exception as error:
            if begun.done():
                raise
            job.refuse(error)
            begun.set_exception(error)
        finally:
            self._waiting.pop(job.id, None)
            # Cancelled: nothing will begin.
            begun.cancel()
            if job.unsaved is not None:
                self._unsaved[job.id] = job
                # What was written of it may say for ever that it is running.
                self._tidied = False
                for oldest in list(self._unsaved)[:-MOST_UNSAVED]:
                    del self._unsaved[oldest]

    async def _tidy_late(self) -> None:
        """Before a run that holds the engines begins, what says that it is running was cut off."""
        try:
            await WRITERS.run(self.history.mark_interrupted)
            self._tidied = True
        except PlaygroundError as error:
            logger.warning("runs that were cut off are not marked: %s", say_message(error))

    def _hold(self, task: asyncio.Task[None]) -> None:
        """Keep a reference to the task, since the event loop has only a weak one."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
