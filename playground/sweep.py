"""A sweep under way: one comparison after the other, within a time budget, kept in the history as it goes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from statistics import fmean, median

from .compare import Comparison, new_run_id
from .config import Config
from .domain.errors import PlaygroundError
from .domain.knobs import Case, label_of
from .domain.measurement import Measurement
from .domain.records import Problem, Status
from .domain.settings import EngineSettings
from .domain.sweep import (
    Estimate,
    Knob,
    Point,
    PointRecord,
    Sweep,
    SweepPlan,
    engine_starts,
    engines_of,
    ordered,
    points_of,
)
from .engine.pool import Pool
from .store import History

logger = logging.getLogger(__name__)

# Where this host has started no engine yet: seconds until one is ready, as seen on two cores and on an H200.
START_S = {"cpu": 60.0, "cuda": 120.0}
# What a point takes beside its rounds (warm-up, the check of the answers), as a share of them.
BESIDE = 0.35
# In less no round fits, on any machine.
LEAST_ROUNDS_S = 1.0


def new_sweep(plan: SweepPlan, case: Case, preset: str | None = None) -> Sweep:
    """Raises InvalidInput for knobs and values that the case does not allow. Nothing has started then."""
    now = datetime.now().astimezone()
    points = [PointRecord(point.number, point.values) for point in points_of(plan, case)]
    named = plan.model_copy(update={"knobs": tuple(_labelled(knob, case) for knob in plan.knobs)})
    return Sweep(new_run_id(now), now.isoformat(timespec="seconds"), named, case, points, preset)


def _labelled(knob: Knob, case: Case) -> Knob:
    return knob.model_copy(update={"side": knob.side and label_of(case, knob.side)})


def estimate(history: History, sweep: Sweep, device: str) -> Estimate:
    """What the points that are left will take at most on this kind of device ("cpu" or "cuda")."""
    path = path_of(sweep)
    known = history.start_seconds(device)
    start_s = median(known) if known else START_S[device]
    starts = engine_starts(path)
    share_s = max(0.0, _share_s(sweep.plan.budget_s - starts * start_s, len(path))) if path else 0.0
    rounds_s = min(sweep.case.measurement.budget_s, share_s)
    return Estimate(len(path), starts, start_s, len(known), (1 + BESIDE) * rounds_s)


def path_of(sweep: Sweep) -> list[Point]:
    """The points that are left, in the order in which they are measured."""
    settled = {point.number for point in sweep.points if point.settled}
    return ordered([point for point in points_of(sweep.plan, sweep.case) if point.number not in settled])


def _share_s(left_s: float, points: int) -> float:
    """How long each point's rounds may take so that all of them fit into what is left."""
    return left_s / points / (1 + BESIDE)


class Sweeping:
    """Measures the points that are left. `current` is the comparison of the point under way, `begun` learns of
    each as it begins."""

    def __init__(
        self,
        config: Config,
        pool: Pool,
        history: History,
        sweep: Sweep,
        device: str,
        begun: Callable[[Comparison], None],
    ) -> None:
        self.sweep = sweep
        self.current: Comparison | None = None
        self.finished = False
        self._config = config
        self._pool = pool
        self._history = history
        self._device = device
        self._begun = begun
        self._path = path_of(sweep)
        self._deadline = float("inf")
        self._stopping = False
        self._running: Counter[EngineSettings] = Counter()
        self._start_s: list[float] = []
        self._point_s: list[float] = []

    @property
    def id(self) -> str:
        return self.sweep.id

    @property
    def title(self) -> str:
        """For whoever finds the engines taken."""
        return self.sweep.asked

    @property
    def remaining_s(self) -> float | None:
        """Seconds that the points not yet begun will take, by those measured so far; None before the first."""
        if not self._point_s:
            return None
        return self._starts_s() + len(self._path) * fmean(self._point_s)

    def check(self) -> None:
        """Raises InvalidInput for a point that this host does not allow. Nothing has started then."""
        for point in self._path:
            self._comparison(point, point.case.measurement).check()

    def stop(self) -> None:
        """End it now; what was measured stays, and it can go on later."""
        self._stopping = True
        if self.current is not None:
            self.current.stop()

    def refuse(self, error: Exception) -> None:
        """It never ran, most likely because somebody else holds the engines."""
        self.sweep.problem = self._problem_of(error)
        self.sweep.status, self.finished = "failed", True

    async def execute(self) -> None:
        """Run it to its end, under the pool's lease; then `sweep.status` and `problem` tell how it went."""
        status: Status = "failed"
        self.sweep.status, self.sweep.problem = "running", None
        self._deadline = time.monotonic() + self.sweep.plan.budget_s
        try:
            await asyncio.to_thread(self._history.begin_sweep, self.sweep)
            while self._path and not self._stopping:
                left_s = self._deadline - time.monotonic() - self._starts_s()
                share_s = _share_s(left_s, len(self._path))
                if share_s < LEAST_ROUNDS_S:
                    self.sweep.problem = Problem("sweep.budget_spent", {"left": len(self._path)})
                    break
                await self._measure(self._path.pop(0), share_s)
            status = "stopped" if self.sweep.left else "done"
        except asyncio.CancelledError:
            status = "stopped"
            raise
        except Exception as error:
            logger.exception("sweep %s failed", self.sweep.id)
            self.sweep.problem = self._problem_of(error)
        finally:
            await asyncio.shield(self._finish(status))

    def _starts_s(self) -> float:
        """Seconds that the engine starts still ahead will take."""
        each = fmean(self._start_s) if self._start_s else START_S[self._device]
        return engine_starts(self._path, self._running) * each

    async def _measure(self, point: Point, share_s: float) -> None:
        record, own = self.sweep.points[point.number], point.case.measurement
        measurement = own.model_copy(update={"budget_s": min(own.budget_s, share_s)})
        began = time.monotonic()
        self.current = self._comparison(point, measurement)
        record.run = self.current.run
        self._begun(self.current)
        self.current.check()
        await self.current.execute()
        self._running = engines_of(point.case)
        await asyncio.to_thread(self._history.save_point, self.sweep.id, record)
        started = [side.ready_after_s for side in record.run.sides if side.ready_after_s is not None]
        self._start_s += started
        # Engines on a CPU start side by side.
        waited_s = max(started, default=0.0) if self._device == "cpu" else sum(started)
        self._point_s.append(time.monotonic() - began - waited_s)

    def _comparison(self, point: Point, measurement: Measurement) -> Comparison:
        case = point.case
        return Comparison(
            self._config,
            self._pool,
            self._history,
            case.sides,
            case.workload,
            measurement,
            self.sweep.preset,
            self.sweep.id,
        )

    async def _finish(self, status: Status) -> None:
        """Written first, told afterwards, as with any run."""
        self.current, self.sweep.status = None, status
        try:
            await asyncio.to_thread(self._history.finish_sweep, self.sweep)
        except Exception:
            logger.exception("sweep %s could not be saved", self.sweep.id)
            self.sweep.problem = self.sweep.problem or Problem("run.not_saved", {"run": self.sweep.id})
        self.finished = True

    def _problem_of(self, error: Exception) -> Problem:
        if isinstance(error, PlaygroundError):
            return error.as_problem()
        return Problem("run.internal", {"run": self.sweep.id})
