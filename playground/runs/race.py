"""Race mode: one prompt to all sides at once. For show: sides that share a device slow each other."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

from .contest import Contest
from .domain.errors import PlaygroundError
from .domain.records import Trial
from .domain.workload import Sampling
from .load.client import Load
from .prepare import Serving

WARM_UP_TOKENS = 16


class Race(Contest):
    """Each side has one trial of one request."""

    async def execute(self) -> None:
        await self._warm_up()
        if self.stopping:
            return
        load = self._new_load(self._servings, self._run.workload.sampling)
        for side, trace, serving in zip(self._run.sides, load.traces, self._servings, strict=True):
            side.trials = [Trial(requests=[trace], before=await serving.idle_counters())]
        self._live.phase = "streaming"
        self._live.since = time.monotonic()
        async with self._sampled(range(len(self._servings))):
            async for index in self._under_way(load).run():
                if load.traces[index].ended:
                    await self._explain(index, [load.traces[index]])
                    [trial] = self._run.sides[index].trials
                    await asyncio.to_thread(
                        self._history.save_trial, self._run.id, index, trial, {0: load.traces[index]}
                    )
        for side, serving in zip(self._run.sides, self._servings, strict=True):
            side.trials[0].after = await serving.idle_counters()
            side.trials[0].complete = not self.stopping
        if all(trace.problem for trace in load.traces) and not self.stopping:
            self._run.problem = load.traces[0].problem
            raise PlaygroundError("run.all_failed")

    def _new_load(self, servings: Sequence[Serving], sampling: Sampling) -> Load:
        endpoints = [serving.endpoint for serving in servings]
        conversation = self._run.workload.conversation
        return Load(endpoints, conversation, sampling, self._config.request_timeout_s, salted=self._salted)

    async def _warm_up(self) -> None:
        """A new engine's first request pays for what is compiled on first use: it must not be the one on show."""
        cold = [serving for serving in self._servings if not serving.warm]
        if not cold:
            return
        pairs = list(zip(self._live.progress, self._servings, strict=True))
        for progress, serving in pairs:
            if not serving.warm:
                progress.advance("first_request")
        sampling = self._run.workload.sampling.model_copy(
            update={"max_tokens": WARM_UP_TOKENS, "ignore_eos": True}
        )
        async with contextlib.aclosing(self._under_way(self._new_load(cold, sampling)).run()) as grown:
            async for _ in grown:
                pass
        for progress, serving in pairs:
            serving.note_warm()
            progress.advance("ready")
