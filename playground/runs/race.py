"""Race mode: one prompt to all sides at once. For demonstration: sides that share a device slow each other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from playground.domain.errors import PlaygroundError
from playground.domain.record.run import Trial
from playground.domain.spec.workload import Sampling
from playground.load.driver_client import RaceLoad

from .session import RunSession
from .sides.served_side import ServedSide

WARM_UP_TOKENS = 16


class Race(RunSession):
    """Each side has one trial of one request."""

    async def execute(self) -> None:
        await self._warm_up()
        if self.stopping:
            return
        load = self._new_load(self._served_sides, self._run.workload.sampling)
        for side, trace, served in zip(self._run.sides, load.traces, self._served_sides, strict=True):
            side.trials = [Trial(requests=[trace], before=await served.idle_counters())]
        self._live.phase = "streaming"
        self._live.since = time.monotonic()
        async with self._sampled(range(len(self._served_sides))):
            async for index in self._under_way(load).run():
                if load.traces[index].ended:
                    await self._explain(index, [load.traces[index]])
                    [trial] = self._run.sides[index].trials
                    await self._saving.trial(index, trial, {0: load.traces[index]})
        for side, served in zip(self._run.sides, self._served_sides, strict=True):
            side.trials[0].after = await served.idle_counters()
            side.trials[0].complete = not self.stopping
        if all(trace.problem for trace in load.traces) and not self.stopping:
            self._run.problem = load.traces[0].problem
            raise PlaygroundError("run.all_failed")

    def _new_load(self, served_sides: Sequence[ServedSide], sampling: Sampling) -> RaceLoad:
        endpoints = [served.endpoint for served in served_sides]
        conversation = self._run.workload.conversation
        return RaceLoad(
            endpoints,
            conversation,
            sampling,
            self._config.request_timeout_s,
            salted=self._salted,
            limits=self._config.limits,
        )

    async def _warm_up(self) -> None:
        """A new engine's first request pays for what is compiled on first use: it must not be the displayed
        one."""
        cold = [served for served in self._served_sides if not served.warm]
        if not cold:
            return
        pairs = list(zip(self._live.progress, self._served_sides, strict=True))
        for progress, served in pairs:
            if not served.warm:
                progress.advance("first_request")
        sampling = self._run.workload.sampling.model_copy(
            update={"max_tokens": WARM_UP_TOKENS, "ignore_eos": True}
        )
        async with contextlib.aclosing(self._under_way(self._new_load(cold, sampling)).run()) as grown:
            async for _ in grown:
                pass
        for progress, served in pairs:
            served.note_warm()
            progress.advance("ready")
