"""What race and measured mode share: loads that can be stopped, counters over time, and why a stream broke."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from playground.config import Config
from playground.domain.record.counters import Sample
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.settings import EngineSettings
from playground.load.driver_client import MeasuredLoad, RaceLoad

from .live import Live
from .saving import Saving
from .sides.served_side import ServedSide

SAMPLE_INTERVAL_S = 0.5
DEATH_S = 5.0
# Problems of requests that an engine's death causes.
BROKEN = ("stream.cut", "stream.connect", "stream.engine")

LoadT = TypeVar("LoadT", RaceLoad, MeasuredLoad)


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` beside the block, and cancel it at the end of the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class RunSession:
    """One run's sides, ready to serve. Subclasses implement `execute`; `stop` ends it early and keeps what
    arrived."""

    def __init__(self, config: Config, saving: Saving, live: Live, served_sides: Sequence[ServedSide]) -> None:
        self.stopping = False
        self._config = config
        self._saving = saving
        self._live = live
        self._run = live.run
        self._served_sides = served_sides
        self._load: RaceLoad | MeasuredLoad | None = None
        # With a salt, no prompt is found in the prefix cache; none is used where that cache is being compared.
        engines = [side.settings for side in live.run.sides if isinstance(side.settings, EngineSettings)]
        self._salted = len({settings.knobs.enable_prefix_caching for settings in engines}) <= 1

    async def execute(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.stopping = True
        if self._load is not None:
            self._load.stop()

    def _under_way(self, load: LoadT) -> LoadT:
        """Registers the load that `stop` has to end."""
        self._load = load
        if self.stopping:
            load.stop()
        return load

    @asynccontextmanager
    async def _sampled(self, indices: Sequence[int]) -> AsyncIterator[None]:
        """Take the counters of these sides about twice a second while the block runs."""
        async with meanwhile(self._sample(indices)):
            yield

    async def _sample(self, indices: Sequence[int]) -> None:
        assert self._live.since is not None
        while True:
            sampled = await asyncio.gather(*(self._served_sides[index].sample() for index in indices))
            at = (time.monotonic() - self._live.since) * 1000
            for index, counters in zip(indices, sampled, strict=True):
                if counters is not None:
                    self._run.sides[index].samples.append(Sample(at, counters))
            await asyncio.sleep(SAMPLE_INTERVAL_S)

    async def _explain(self, index: int, traces: Sequence[RequestTrace]) -> None:
        """If streams of this side broke because its engine died: record why the engine died."""
        side = self._run.sides[index]
        if not any(trace.problem and trace.problem.message_id in BROKEN for trace in traces):
            return
        if (failure := await self._served_sides[index].failure(DEATH_S)) is not None:
            side.problem = failure.as_message()
            side.log_tail = failure.log_tail
