"""Measured mode: the same workload to each side in turn, round after round, until enough is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, NoReturn, TypeVar

from playground.config import Config
from playground.domain.answers.agreement import answers_of
from playground.domain.errors import PlaygroundError, WorkFailed
from playground.domain.message import Message
from playground.domain.record.evidence import AccuracyEvidence, HarnessEvidence, OutputEvidence
from playground.domain.record.metrics import request_figures
from playground.domain.record.run import Trial
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.measurement import MIN_ROUNDS, Measurement
from playground.domain.spec.workload import Prompt
from playground.domain.stats.rounds import order_of, rounds_of, run_verdicts, settled
from playground.load.driver_client import MeasuredLoad

from .checks import accuracy, answers, harness
from .checks.client import OnProgress
from .live import Live, Phase
from .saving import Saving
from .session import RunSession, meanwhile
from .sides.energy import EnergyMeter
from .sides.served_side import ServedSide

# A side is warm when the step times of two passes in a row differ by no more than this share, or after so many
# passes.
WARM_WITHIN = 0.05
WARM_UP_PASSES = 4
SAVE_INTERVAL_S = 0.8

EvidenceT = TypeVar("EvidenceT", OutputEvidence, AccuracyEvidence, HarnessEvidence)


class Measured(RunSession):
    """Warm-up of each side, then rounds: every side once, the order alternating; then the answers are compared."""

    def __init__(
        self,
        config: Config,
        saving: Saving,
        live: Live,
        served_sides: Sequence[ServedSide],
        plan: Measurement,
        prompts: Sequence[Prompt],
    ) -> None:
        super().__init__(config, saving, live, served_sides)
        self._plan = plan
        self._prompts = prompts
        # The budget ran out within a trial.
        self._overdue = False
        self._checking: asyncio.Task[Any] | None = None

    async def execute(self) -> None:
        self._live.phase = "warming_up"
        for index in range(len(self._served_sides)):
            await self._warm_up(index)
        self._live.phase = "measuring"
        self._live.since = time.monotonic()
        number = 0
        while not (self.stopping or self._overdue) and self._goes_on(number):
            for index in order_of(number, len(self._served_sides)):
                await self._trial(number, index)
                if self.stopping:
                    return
                if self._overdue:
                    break
            number += 1
        await self._examine()

    def stop(self) -> None:
        super().stop()
        if self._checking is not None:
            self._checking.cancel()

    async def _examine(self) -> None:
        """Run the checks that follow the last round: do the answers agree, and are they right?"""
        endpoints, timeout_s = [served.endpoint for served in self._served_sides], self._config.request_timeout_s
        if self._plan.check_outputs:
            conversations, sides_answers = answers_of(self._run)
            sampling = self._run.workload.sampling
            self._run.outputs = await self._checked(
                "checking",
                lambda on_progress: answers.examine(
                    endpoints, conversations, sampling, sides_answers, timeout_s, on_progress
                ),
            )
        if self._plan.check_accuracy:
            self._run.accuracy = await self._checked(
                "scoring", lambda on_progress: accuracy.examine(endpoints, timeout_s, on_progress)
            )
        if (plan := self._plan.harness) is not None:
            self._run.harness = await self._checked(
                "evaluating",
                lambda on_progress: harness.examine(plan, self._run, endpoints, timeout_s, on_progress),
            )

    async def _checked(
        self, phase: Phase, examine: Callable[[OnProgress], Coroutine[Any, Any, EvidenceT]]
    ) -> EvidenceT | None:
        """Untimed, and no failure of it fails the run: what can't be collected is left out. None if stopped."""
        if self.stopping:
            return None
        self._live.phase, self._live.serving, self._live.checked = phase, None, (0, 0)

        def on_progress(done: int, total: int) -> None:
            self._live.checked = (done, total)

        task = self._checking = asyncio.create_task(examine(on_progress))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
        return None if task.cancelled() else task.result()

    def _goes_on(self, done: int) -> bool:
        """Whether another round is due after so many. Depends on the intervals' width, never on their sign."""
        assert self._live.since is not None
        spent_s = time.monotonic() - self._live.since
        # A round that would end beyond the budget is not begun.
        if done >= self._plan.max_rounds or (done and spent_s * (done + 1) / done > self._plan.budget_s):
            return False
        return done < MIN_ROUNDS or not settled(self._run, run_verdicts(self._run, rounds_of(self._run)))

    def _profile(self, index: int) -> LoadProfile:
        return self._run.sides[index].profile or self._plan.profile

    def _new_load(self, index: int, profile: LoadProfile) -> MeasuredLoad:
        sampling = self._run.workload.sampling
        return self._under_way(
            MeasuredLoad(
                self._served_sides[index].endpoint,
                self._prompts,
                sampling,
                profile,
                sampling.seed or 0,
                self._config.request_timeout_s,
                salted=self._salted,
                limits=self._config.limits,
                cores=self._served_sides[index].near_cores,
            )
        )

    async def _warm_up(self, index: int) -> None:
        """The same shapes, not counted, until the time between chunks settles or the passes are spent."""
        progress, profile = self._live.progress[index], self._profile(index)
        progress.advance("warming")
        self._live.serving = index
        before: float | None = None
        answered = False
        for _ in range(WARM_UP_PASSES):
            load = self._new_load(index, profile.warm_up())
            with _stopped_after(load, self._plan.budget_s + self._config.request_timeout_s):
                async for _ in load.run():
                    pass
            if self.stopping:
                return
            await self._refuse_if_dead(index, load.in_order)
            answered = answered or any(trace.problem is None for trace in load.in_order)
            now = _step_ms(load.in_order)
            if now and before and abs(now / before - 1) < WARM_WITHIN:
                break
            before = now
        if not answered:
            self._refuse(index, load.in_order)
        self._served_sides[index].note_warm()
        progress.advance("ready")

    async def _trial(self, number: int, index: int) -> None:
        assert self._live.since is not None
        side, served = self._run.sides[index], self._served_sides[index]
        self._live.serving = index
        trial = Trial(round=number, before=await served.idle_counters())
        now = time.monotonic()
        trial.started_ms = (now - self._live.since) * 1000
        side.trials.append(trial)
        load = self._new_load(index, self._profile(index))
        meter = EnergyMeter(served, self._live.since)
        unsaved: dict[int, RequestTrace] = {}
        left_s = max(0.0, self._live.since + self._plan.budget_s - now) + self._config.request_timeout_s
        try:
            with _stopped_after(load, left_s) as overdue:
                async with (
                    self._sampled([index]),
                    meanwhile(self._save_often(index, trial, unsaved)),
                    meter.over(load),
                ):
                    async for ended in load.run():
                        unsaved[ended] = load.traces[ended]
                        trial.requests.append(load.traces[ended])
        finally:
            trial.requests = load.in_order
        self._overdue = overdue.is_set()
        trial.energy_j, trial.limited = meter.joules(side.samples), load.limited
        trial.after = await served.idle_counters()
        trial.complete = not (self.stopping or self._overdue)
        await self._save(index, trial, unsaved)
        if not self.stopping:
            await self._refuse_if_dead(index, trial.requests)
            if not any(trace.problem is None for trace in trial.requests):
                self._refuse(index, trial.requests)

    async def _save_often(self, index: int, trial: Trial, unsaved: dict[int, RequestTrace]) -> None:
        """Save about every second, so that a killed app loses no request that had ended before."""
        while True:
            await asyncio.sleep(SAVE_INTERVAL_S)
            if unsaved:
                await self._save(index, trial, unsaved)

    async def _save(self, index: int, trial: Trial, unsaved: dict[int, RequestTrace]) -> None:
        requests: Mapping[int, RequestTrace] = dict(unsaved)
        unsaved.clear()
        await self._saving.trial(index, trial, requests)

    async def _refuse_if_dead(self, index: int, traces: Sequence[RequestTrace]) -> None:
        """Raise if an engine died: that ends the run, while a failed request is only counted as an error."""
        await self._explain(index, traces)
        if self._run.sides[index].problem is not None:
            self._refuse(index, traces)

    def _refuse(self, index: int, traces: Sequence[RequestTrace]) -> NoReturn:
        """End the run, because this side does not answer."""
        side = self._run.sides[index]
        cause = side.problem or next((trace.problem for trace in traces if trace.problem), None)
        if cause is None:
            raise WorkFailed("load.nothing_sent")
        self._run.problem = Message("run.side_silent", {"side": side.label, "cause": cause})
        raise PlaygroundError("run.all_failed")


@contextmanager
def _stopped_after(load: MeasuredLoad, seconds: float) -> Iterator[asyncio.Event]:
    """Stop the load if it still runs at that time, since an endpoint may keep a stream alive for ever. The event
    is set then."""
    overdue = asyncio.Event()

    def stop() -> None:
        overdue.set()
        load.stop()

    timer = asyncio.get_running_loop().call_later(seconds, stop)
    try:
        yield overdue
    finally:
        timer.cancel()


def _step_ms(traces: Sequence[RequestTrace]) -> float | None:
    """The median time between chunks: about one step, and steadier than any single request's figure."""
    gaps = [gap for trace in traces for gap in request_figures(trace).chunk_gap_ms]
    return median(gaps) if gaps else None
