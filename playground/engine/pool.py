"""Which engines run, which run holds them, and when they stop. A host has one lease."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock

from playground import private_files
from playground.config import Config
from playground.domain.errors import EngineFailed, HostBusy, InvalidInput

from .command import Command
from .devices import Placement
from .server import Engine

logger = logging.getLogger(__name__)

HOST_POLL_S = 0.5
# The longest path of a Unix socket, and the longest name of an engine.
SOCKET_BYTES = 107
NAME_LENGTH = 11


@dataclass(frozen=True)
class Holder:
    """Who holds the lease: what they run, from where, since when (HH:MM:SS, host's clock)."""

    what: str
    where: str
    since: str
    run_id: str = ""


@dataclass(frozen=True)
class EngineRequest:
    """One engine that a run needs. `name` stands for its settings and place: equal names, equal engines.

    `sized`: its KV cache has a size, so that it takes none from what it finds free on its GPUs.
    """

    name: str
    command: Command
    placement: Placement
    sized: bool = False

    @staticmethod
    def socket(config: Config, name: str) -> Path:
        """A private Unix socket, short enough for its 107 bytes, that no other process uses."""
        return config.state / f"{os.getpid()}-{name}.sock"


class Pool:
    """This process's engines, and its side of the host's lease.

    The host's lock is held while this process has engines; the lease, within it, while one of its runs uses them.
    Raises InvalidInput for a state folder whose path is too long for sockets.
    """

    def __init__(self, config: Config) -> None:
        excess = len(os.fsencode(EngineRequest.socket(config, "x" * NAME_LENGTH))) - SOCKET_BYTES
        if excess > 0:
            raise InvalidInput(
                "private.too_long", path=str(config.state), variable="PLAYGROUND_STATE", excess=excess
            )
        self._config = config
        self._engines: dict[str, Engine] = {}
        self._lease = asyncio.Lock()
        self._host_lock = filelock.FileLock(config.state / "host.lock", mode=0o600)
        self._holder_file = config.state / "holder.json"
        self._idle_since = time.monotonic()
        self.holder: Holder | None = None

    @property
    def engines(self) -> Sequence[Engine]:
        return list(self._engines.values())

    @asynccontextmanager
    async def lease(self, holder: Holder, *, wait: bool = False) -> AsyncIterator[None]:
        """Hold the engines. Raises HostBusy if another run holds them, unless `wait` (first come first served)."""
        # Locked without a holder: engines are being stopped, which ends soon.
        if self.holder is not None and not wait:
            raise HostBusy("host.busy", **_holder_params(self.holder))
        async with self._lease:
            self.holder = holder
            try:
                await self._lock_host(holder, wait)
                yield
            finally:
                self.holder = None
                self._idle_since = time.monotonic()
                if not self._engines:
                    self._host_lock.release()

    def live(self, request: EngineRequest) -> Engine | None:
        """The engine that already runs with exactly these settings, if there is one that can be reached."""
        engine = self._engines.get(request.name)
        return engine if engine is not None and engine.reachable else None

    async def provide(
        self, requests: Sequence[EngineRequest], on_stage: Callable[[int, str], None]
    ) -> list[Engine | EngineFailed | None]:
        """An engine (or its failure) for each request; unchanged ones are reused, unneeded ones stopped first.

        They start together, but one after the other on a GPU where one of them sizes its KV cache by what it finds
        free. Once one has failed, those that are not ready are stopped: None.
        """
        keep = {request.name for request in requests if self.live(request)}
        await asyncio.gather(*(self._engines.pop(name).stop() for name in self._engines.keys() - keep))
        turns = {
            gpu: asyncio.Lock()
            for request in requests
            if request.name not in keep and not request.sized
            for gpu in request.placement.gpus
        }
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._start_or_reuse(index, request, turns, on_stage))
                for index, request in enumerate(requests)
            ]
            starting = set(tasks)
            while starting:
                ended, starting = await asyncio.wait(starting, return_when=asyncio.FIRST_COMPLETED)
                if any(not task.cancelled() and isinstance(task.result(), EngineFailed) for task in ended):
                    for task in starting:
                        task.cancel()
        return [None if task.cancelled() else task.result() for task in tasks]

    async def _start_or_reuse(
        self,
        index: int,
        request: EngineRequest,
        turns: Mapping[int, asyncio.Lock],
        on_stage: Callable[[int, str], None],
    ) -> Engine | EngineFailed:
        if engine := self.live(request):
            on_stage(index, "ready")
            return engine
        uds = EngineRequest.socket(self._config, request.name)
        log_bytes = self._config.limits.log_bytes
        engine = Engine(request.command, request.placement, uds, uds.with_suffix(".log"), log_bytes)
        self._engines[request.name] = engine
        try:
            async with AsyncExitStack() as stack:
                # Sorted: two engines that wait for each other's GPU would never start.
                for gpu in sorted(turns.keys() & set(request.placement.gpus)):
                    await stack.enter_async_context(turns[gpu])
                await engine.start(self._config.start_timeout_s, lambda stage: on_stage(index, stage))
        except EngineFailed as failure:
            self._engines.pop(request.name, None)
            return failure
        except BaseException:
            self._engines.pop(request.name, None)
            raise
        return engine

    async def stop_all(self) -> None:
        """Stop every engine and give the host's lock back. A run that comes meanwhile waits for that."""
        async with self._lease:
            engines, self._engines = list(self._engines.values()), {}
            await asyncio.gather(*(engine.stop() for engine in engines))
            self._host_lock.release()

    def release(self) -> None:
        """Give the host's lock back at the end of the process, whose engines have ended."""
        self._engines.clear()
        self._host_lock.release()

    async def stop_when_idle(self) -> None:
        """Runs for ever: stops the engines once no run has used them for the configured time."""
        while True:
            await asyncio.sleep(min(self._config.idle_stop_s / 4, 5))
            idle_s = time.monotonic() - self._idle_since
            if self._engines and not self._lease.locked() and idle_s > self._config.idle_stop_s:
                logger.info("stopping engines after %.0f s without a run", idle_s)
                await self.stop_all()

    async def _lock_host(self, holder: Holder, wait: bool) -> None:
        private_files.private_folder(self._config.state, "PLAYGROUND_STATE")
        while not self._host_lock.is_locked:
            try:
                self._host_lock.acquire(timeout=0)
            except filelock.Timeout as error:
                if not wait:
                    raise HostBusy("host.busy", **_holder_params(self._read_holder())) from error
                await asyncio.sleep(HOST_POLL_S)
        try:
            private_files.write_whole(self._holder_file, json.dumps(asdict(holder)))
        except OSError as error:
            # Others learn less about who holds the lock; the run itself may go on.
            logger.warning("others can't see who holds the engines: %s", error)

    def _read_holder(self) -> Holder | None:
        try:
            return Holder(**json.loads(self._holder_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None


def _holder_params(holder: Holder | None) -> dict[str, object]:
    holder = holder or Holder("?", "?", "?")
    return {"what": holder.what, "where": holder.where, "since": holder.since}
