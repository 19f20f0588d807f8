"""A sweep under way: one comparison after the other, within a time budget, saved in the history as it proceeds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from statistics import fmean, median
from typing import ParamSpec

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Message, Section
from playground.domain.record.run import Run, Status
from playground.domain.spec.case import Case
from playground.domain.spec.difference import without
from playground.domain.spec.measurement import MIN_ROUNDS, Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.stats.rounds import round_seconds, whole_rounds
from playground.domain.sweep.budget import BESIDE, LEAST_ROUNDS_S, START_S, Estimate, fitting, worth_s
from playground.domain.sweep.knobs import label_of, varied_sides
from playground.domain.sweep.order import Grid, engine_starts, engines_of
from playground.domain.sweep.plan import Point, SweepPlan
from playground.domain.sweep.record import PointRecord, Sweep
from playground.domain.validation import validate
from playground.engine import devices
from playground.engine.pool import Pool
from playground.logs import refused
from playground.prompts import PromptSet
from playground.store import WRITERS, History
from playground.workers import RUNS, together

from .comparison import Comparison, new_run_id
from .elsewhere.comparison import ComparisonElsewhere
from .elsewhere.place import Place
from .elsewhere.places import Places
from .expected import earlier_round, earlier_starts
from .failure import as_message
from .saving import not_saved
from .search import BETTER, REPEAT_ROUNDS, Search
from .sides import placement

logger = logging.getLogger(__name__)
P = ParamSpec("P")


def new_sweep(plan: SweepPlan, case: Case, preset: str | None = None) -> Sweep:
    """Raises InvalidInput for knobs and values that the case does not allow. Nothing has started then."""
    if case.measurement.harness is not None:
        raise InvalidInput("harness.not_in_sweep")
    now = datetime.now().astimezone()
    # A letter and a label may name the same side: whether the knobs differ is known only now.
    knobs = [{**knob.model_dump(), "side": knob.side and label_of(case, knob.side)} for knob in plan.knobs]
    named = validate(SweepPlan, {**plan.model_dump(), "knobs": knobs}, where=Section.SWEEP)
    named, case = _relabelled(named, case)
    sweep = Sweep(new_run_id(now), now.isoformat(timespec="seconds"), named, case, preset=preset)
    sweep.points = [PointRecord(point.number, point.values) for point in sweep.planned]
    return sweep


def _relabelled(plan: SweepPlan, case: Case) -> tuple[SweepPlan, Case]:
    """The same, where no label tells a value of what is varied. Raises InvalidInput."""
    varied = [(knob.name, varied_sides(case, knob.name, knob.side)) for knob in plan.knobs if knob.of_engines]
    labels = {
        side.label: without(side, [name for name, labels in varied if side.label in labels]) for side in case.sides
    }
    if len({*labels.values()}) < len(labels):
        return plan, case
    sides = tuple(side.model_copy(update={"label": labels[side.label]}) for side in case.sides)
    knobs = tuple(knob.model_copy(update={"side": knob.side and labels[knob.side]}) for knob in plan.knobs)
    return plan.model_copy(update={"knobs": knobs}), case.model_copy(update={"sides": sides})


def estimate(history: History, sweep: Sweep, device: str) -> Estimate:
    """The longest time that the remaining points can take on this kind of device ("cpu" or "cuda")."""
    order = order_of(sweep)
    known = earlier_starts(history, device)
    start_s = median(known) if known else START_S[device]
    starts, points, budget_s = order.starts(Counter()), order.most, sweep.plan.budget_s
    least_s = worth_s(earlier_round(history, devices.machine(), sweep.case))
    each_s = starts * start_s / max(1, points)
    fits, share_s = fitting(sweep.plan, budget_s, points, each_s, least_s) if points else (0, 0.0)
    point_s = (1 + BESIDE) * min(sweep.case.measurement.budget_s, share_s)
    total_s = min(budget_s, fits * (each_s + point_s))
    return Estimate(points, fits, starts, start_s, len(known), point_s, total_s, least_s)


def order_of(sweep: Sweep) -> Grid | Search:
    """The order in which the remaining points are measured."""
    return Search(sweep) if sweep.plan.search else Grid(sweep)


class SweepRun:
    """Measures the remaining points. `current` is the comparison of the point under way, or of the last one until
    the next begins; `begun` is called with each as it begins. `places`: where to measure them instead of here, one
    at a time each; a search, which learns from each point before it takes the next, uses the first of them."""

    def __init__(
        self,
        config: Config,
        pool: Pool,
        history: History,
        sweep: Sweep,
        device: str,
        begun: Callable[[Comparison], None],
        places: Sequence[Place] = (),
    ) -> None:
        self.sweep = sweep
        self.current: Comparison | None = None
        self.finished = False
        # As of a comparison; its points are the same visitor's.
        self.owner = ""
        self._config = config
        self._pool = pool
        self._history = history
        self._device = device
        self._begun = begun
        self._order = order_of(sweep)
        # Taken, but without a result so far; for a repeated point, without a better result than before.
        self._open: set[int] = set()
        # Points whose second turn failed: retrying them once more might never end.
        self._failed_again: set[int] = set()
        # Files of prompts are read once: uploaded ones are gone before a long sweep ends.
        self._files: dict[str, PromptSet] = {}
        self._deadline = float("inf")
        self._stopping = False
        self._places = Places(places, one_at_a_time=sweep.plan.search)
        self._under_way = set[Comparison]()
        self._running: Counter[EngineSettings] = Counter()
        self._start_s: list[float] = []
        self._point_s: list[float] = []
        self._round_s: list[float] = []
        self._unsaved_runs: list[Run] = []
        self.unsaved: Message | None = None

    @property
    def id(self) -> str:
        return self.sweep.id

    @property
    def title(self) -> str:
        """The title of the sweep, shown while it uses the engines."""
        return self.sweep.title

    @property
    def record(self) -> Sweep:
        """What is saved of it."""
        return self.sweep

    @property
    def remaining_s(self) -> float | None:
        """Seconds that the points not yet begun will take, by those measured so far; None before the first."""
        if not self._point_s:
            return None
        return self._starts_s(self._running) + self._order.most * fmean(self._point_s)

    def check(self) -> None:
        """Raises InvalidInput for a point that this host does not allow. Nothing has started then."""
        self._config.limits.check("sweep_points", self.sweep.plan.most_points)
        for point in self._order.candidates:
            self._comparison(point, point.case.measurement).check()

    def check_runtimes(self) -> None:
        """Raises InvalidInput for what a point's runtime lacks here. Blocking: probes each runtime."""
        if not self._places.here:
            return
        sides = [(side.label, side.engine) for point in self._order.candidates for side in point.case.sides]
        placement.check_runtimes(self._config, sides)

    def stop(self) -> None:
        """End it now; what was measured is kept, and the sweep can be resumed later."""
        self._stopping = True
        for comparison in self._under_way:
            comparison.stop()

    def refuse(self, error: Exception) -> None:
        """End it before it ran, most likely because another run is using the engines."""
        self.sweep.problem = as_message(error, self.sweep.id)
        self.sweep.status, self.finished = "failed", True

    async def execute(self) -> None:
        """Run it to its end, under the pool's lease. `sweep.status` and `problem` then hold the outcome."""
        status: Status = "failed"
        self.sweep.status, self.sweep.problem = "running", None
        self._deadline = time.monotonic() + self.sweep.plan.budget_s
        try:
            await self._tried(self._take_up)
            self._places.begin(with_first=not self.sweep.points[0].settled)
            while not self._stopping and self._places.in_use:
                taken = await together(self._take_from(place) for place in self._places.in_use)
                if not self._places.lost and not (all(taken) and self._again()):
                    break
            complete = not self._order.most and not self._open
            short = sum(map(self.sweep.cut_short, self.sweep.points))
            if complete and short:
                self.sweep.problem = Message("sweep.few_rounds", {"short": short, "least": MIN_ROUNDS})
            elif self._places.problem is not None:
                self.sweep.problem = self._places.problem
            elif self._open and not self._stopping:
                self.sweep.problem = Message("sweep.budget_spent", {"left": self.sweep.remaining})
            status = "done" if complete and not short else "stopped"
        except asyncio.CancelledError:
            status = "stopped"
            raise
        except PlaygroundError as error:
            refused(logger, error, "sweep %s failed", self.sweep.id)
            self.sweep.problem = as_message(error, self.sweep.id)
        except Exception as error:
            logger.exception("sweep %s failed", self.sweep.id)
            self.sweep.problem = as_message(error, self.sweep.id)
        finally:
            await asyncio.shield(self._finish(status))

    async def _take_from(self, place: Place | None) -> bool:
        """Measure points at the place until none is left to take (True), or for another reason."""
        while not self._stopping and place in self._places.in_use:
            if place is not None and place not in self._places.anchored:
                await self._repeat_first(place)
                continue
            point = self._places.retaken(place) or await RUNS.run(self._order.take, self._running)
            if point is None:
                return True
            self._open.add(point.number)
            if self._stopping:
                break
            share_s = self._share_s(point)
            # Engines are not started for fewer rounds than give an interval.
            if share_s < max(LEAST_ROUNDS_S, MIN_ROUNDS * min(self._round_s, default=0.0)):
                break
            await self._measure(point, share_s, place)
        return False

    async def _repeat_first(self, place: Place) -> None:
        """Measure the first point here, too."""
        point, record = self.sweep.planned[0], self.sweep.points[0]
        share_s = min(point.case.measurement.budget_s, self._share_s(point))
        measurement = self._measurement(point.case.measurement, record, share_s)
        comparison = self._comparison(point, measurement, place)
        assert isinstance(comparison, ComparisonElsewhere)
        self._begun(comparison)
        await self._executed(comparison)
        if not comparison.lost:
            self._places.anchored.add(place)
            self._places.delivered(place)
            await comparison.keep()
            if comparison.run.status == "done":
                self.sweep.anchors.append(comparison.run)
        elif not self._stopping:
            self._places.strike(place, comparison.run.problem)

    async def _executed(self, comparison: Comparison) -> None:
        self._under_way.add(comparison)
        try:
            await comparison.execute()
        finally:
            self._under_way.discard(comparison)

    async def _came(self, comparison: ComparisonElsewhere, point: Point) -> bool:
        """Keep what came from elsewhere; False if nothing came, and the point is open as it was."""
        place, problem = comparison.place, comparison.run.problem
        if comparison.lost and (self._stopping or self._places.lose(point, place, problem)):
            return False
        if not comparison.lost:
            self._places.delivered(place)
        await comparison.keep()
        return True

    def _take_up(self) -> None:
        """Take over what another process measured of this sweep since it was read."""
        stored = self._history.sweep(self.sweep.id)
        if stored is not None:
            self.sweep.points[:] = stored.points
            self.sweep.anchors[:] = stored.anchors
            self._order = order_of(self.sweep)
        self._history.begin_sweep(self.sweep, self.owner)

    async def _tried(self, write: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Write to the history. One that can't be used does not end the sweep, which is written again at its
        end."""
        try:
            await WRITERS.run(write, *args, **kwargs)
        except Exception as error:
            logger.exception("sweep %s could not be saved", self.sweep.id)
            self.unsaved = not_saved(error, self.sweep.id)
        else:
            self.unsaved = None

    def _save_all(self) -> None:
        for run in self._unsaved_runs:
            self._history.finish(run)
        self._history.finish_sweep(self.sweep)

    def _again(self) -> bool:
        """Whether points that were cut short get another turn: if more time is left for each than they had."""
        if self.sweep.plan.search:
            return False
        order = Grid(self.sweep)
        order.candidates = [point for point in order.candidates if point.number not in self._failed_again]
        runs = [self.sweep.points[point.number].run for point in order.candidates]
        budgets = [run.measurement.budget_s for run in runs if run is not None and run.measurement is not None]
        left_s = self._deadline - time.monotonic() - order.starts(self._running) * self._each_start_s
        if not budgets or left_s / order.most / (1 + BESIDE) <= max(budgets):
            return False
        self._order = order
        return True

    def _share_s(self, point: Point) -> float:
        """Seconds for this point's rounds, so that as many points as are worth measuring fit into the budget."""
        starting = engine_starts([point], self._running) * self._each_start_s
        left_s = self._deadline - time.monotonic() - starting
        ahead = -(-self._order.most // len(self._places.in_use))
        start_s = self._starts_s(engines_of(point.case)) / (1 + ahead)
        least_s = worth_s(fmean(self._round_s) if self._round_s else None)
        return fitting(self.sweep.plan, left_s, 1 + ahead, start_s, least_s)[1]

    @property
    def _each_start_s(self) -> float:
        return fmean(self._start_s) if self._start_s else START_S[self._device]

    def _starts_s(self, running: Counter[EngineSettings]) -> float:
        """Seconds that the engine starts of the points not yet taken will take, if these engines run before."""
        return self._order.starts(running) * self._each_start_s

    async def _measure(self, point: Point, share_s: float, place: Place | None) -> None:
        record = self.sweep.points[point.number]
        before = record.run if record.settled else None
        measurement = self._measurement(point.case.measurement, record, share_s)
        began = time.monotonic()
        self.current = comparison = self._comparison(point, measurement, place)
        record.run = ran = comparison.run
        if place is None:
            # Elsewhere none goes on running.
            self._running = engines_of(point.case)
        self._begun(comparison)
        comparison.check()
        await self._executed(comparison)
        if isinstance(comparison, ComparisonElsewhere) and not await self._came(comparison, point):
            record.run = before
            return
        # Another turn that failed, was broken off, or completed fewer rounds does not replace the earlier result.
        better = before is None or (ran.status == "done" and whole_rounds(ran) >= whole_rounds(before))
        if not better:
            record.run = before
            if ran.status == "failed":
                self._failed_again.add(point.number)
        if ran.status == "failed" or (better and record.settled):
            self._open.discard(point.number)
        if comparison.unsaved:
            self._unsaved_runs.append(ran)
        else:
            await self._tried(self._history.save_point, self.sweep.id, record)
        if self.sweep.measured(record):
            await RUNS.run(self._order.learn, record)
        self._learn_times(comparison, time.monotonic() - began)

    def _learn_times(self, comparison: Comparison, took_s: float) -> None:
        ran, waited_s = comparison.run, comparison.live.starts_s or 0.0
        started = sum(side.ready_after_s is not None for side in ran.sides)
        # Engines that start side by side share the wait.
        self._start_s += [waited_s / max(1, started)] * started
        self._point_s.append(took_s - waited_s)
        if (round_s := round_seconds(ran)) is not None:
            self._round_s.append(round_s)

    def _measurement(self, planned: Measurement, record: PointRecord, share_s: float) -> Measurement:
        """The planned measurement with this much time for the rounds; a search leaves out what it does not learn
        from."""
        changes: dict[str, object] = {"budget_s": min(planned.budget_s, share_s)}
        if self.sweep.plan.search:
            # Enough rounds for an interval: measuring another point is worth more than further rounds. A
            # repetition gets more, since it has to distinguish what the first rounds could not.
            changes |= {"check_outputs": False, "check_accuracy": False, "max_rounds": MIN_ROUNDS}
            if self.sweep.measured(record):
                changes |= {
                    "max_rounds": REPEAT_ROUNDS * MIN_ROUNDS,
                    "target_width": min(planned.target_width, BETTER),
                    "budget_s": min(REPEAT_ROUNDS * planned.budget_s, share_s),
                }
        return planned.model_copy(update=changes)

    def _comparison(self, point: Point, measurement: Measurement, place: Place | None = None) -> Comparison:
        comparison = self._unowned(point, measurement, place)
        comparison.owner = self.owner
        return comparison

    def _unowned(self, point: Point, measurement: Measurement, place: Place | None) -> Comparison:
        case = point.case
        if place is not None:
            case = case.model_copy(update={"measurement": measurement})
            ours = (self._config, self._pool, self._history)
            return ComparisonElsewhere(place, *ours, case, self.sweep.preset, self.sweep.id)
        return Comparison(
            self._config,
            self._pool,
            self._history,
            case.sides,
            case.workload,
            measurement,
            self.sweep.preset,
            self.sweep.id,
            self._files,
        )

    async def _finish(self, status: Status) -> None:
        """Save it before `finished` is set, as with any run."""
        self.current, self.sweep.status = None, status
        await self._tried(self._save_all)
        self.sweep.problem = self.sweep.problem or self.unsaved
        self.finished = True
