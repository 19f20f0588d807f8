"""One engine that this process runs: start it, follow its log until it is ready, watch it, stop it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import httpx

from playground import private_files
from playground.domain.errors import EngineFailed, InvalidInput
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.run import StartStage
from playground.engine.failures.diagnosis import diagnose, hung
from playground.engine.failures.log_lines import LONGEST_LINE
from playground.engine.failures.stages import StageSeconds, later, stage_of
from playground.processes import Guarded, quiet_environment
from playground.workers import RUNS

from . import path_log, telemetry
from .command import Command
from .devices import Placement
from .kinds.kind import HOST

POLL_S = 0.1
# For an engine to end by itself before it is killed. One that has not started has nothing to put in order.
STOP_GRACE_S, START_GRACE_S = 10.0, 2.0
# Of a log at most two blocks are read at a time, and so many lines are kept from its beginning and its end.
BLOCK = 2**20
KEPT_LINES = 5_000


class LogTail:
    """Reads what was appended to a growing file. `lines`: the first and the last of those that were read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._partial = ""
        self.lines: list[str] = []

    def read(self) -> list[str]:
        """The complete lines that are new since the last call, each cut at LONGEST_LINE; of very many, the first
        and the last. None if somebody has removed the file: temporary folders are tidied."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # Less than before: the guard shortened it.
            self._offset = min(self._offset, size)
            new = self._read_block(file)
            if size - self._offset > BLOCK:
                self._offset, self._partial = size - BLOCK, ""
            new += self._read_block(file)
        self.lines += new
        del self.lines[KEPT_LINES:-KEPT_LINES]
        return new

    def _read_block(self, file: BinaryIO) -> list[str]:
        file.seek(self._offset)
        block = file.read(BLOCK)
        self._offset += len(block)
        text = (self._partial + block.decode(errors="replace")).replace("\r", "\n")
        *lines, self._partial = (line[:LONGEST_LINE] for line in text.split("\n"))
        return lines


@dataclass(eq=False)
class Engine:
    """A server that this process runs: vLLM on a private Unix socket, another engine on a port of this machine."""

    command: Command
    placement: Placement
    uds: Path
    log: Path
    log_bytes: int
    stage: str = "waiting"
    started_at: float = field(default_factory=time.monotonic)
    ready_after_s: float | None = None
    stages: tuple[StartStage, ...] = ()
    path: EnginePath | None = None
    warm: bool = False
    _stage_since: float = field(default_factory=time.monotonic)
    _process: Guarded | None = None
    _client: httpx.AsyncClient | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        """The client for health and metrics; the load goes through the driver."""
        if self._client is None:
            port = self.command.port
            # Reading the certificates that nothing here has a use for takes 20 ms.
            transport = httpx.AsyncHTTPTransport(uds=str(self.uds) if port is None else None, verify=False)
            where = "engine" if port is None else f"{HOST}:{port}"
            self._client = httpx.AsyncClient(transport=transport, base_url=f"http://{where}", trust_env=False)
        return self._client

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.exit_code is None

    @property
    def reachable(self) -> bool:
        """Whether there is something to connect to."""
        return self.alive and (self.command.port is not None or self.uds.exists())

    async def start(self, timeout_s: float, on_stage: Callable[[str], None]) -> None:
        """Start it and return when /health answers 200. Raises EngineFailed within a second of its exit,
        or if the host can't start one."""
        self.started_at = time.monotonic()
        self._process = self._spawn()
        tail, seconds = LogTail(self.log), StageSeconds(self.started_at)
        self._advance("importing" if self.command.kind is None else "serving", on_stage)
        try:
            async with asyncio.timeout(timeout_s):
                while not await self._healthy():
                    await asyncio.sleep(POLL_S)
                    for line in tail.read():
                        seconds.read(line, time.monotonic())
                        if (stage := stage_of(line)) is not None:
                            self._advance(stage, on_stage)
                    if (code := self._process.exit_code) is not None:
                        tail.read()
                        raise await RUNS.run(diagnose, tail.lines, code, str(self.log))
        except TimeoutError as error:
            in_stage_s = time.monotonic() - self._stage_since
            await self.stop(START_GRACE_S)
            raise hung(tail.lines, self.stage, timeout_s, in_stage_s, str(self.log)) from error
        except BaseException:
            await self.stop(START_GRACE_S)
            raise
        now = time.monotonic()
        self.ready_after_s = now - self.started_at
        if self.command.kind is not None:
            self.stages = (StartStage("serving", round(self.ready_after_s, 2)),)
        else:
            self.stages = seconds.ended(now)
            self.path = await RUNS.run(path_log.read, self.log, await telemetry.read_page(self.client) or "")
        self._advance("ready", on_stage)

    def _spawn(self) -> Guarded:
        """Raises EngineFailed if the state folder can't be used, or no process can be started."""
        folder = self.uds.parent
        try:
            private_files.private_folder(folder, "PLAYGROUND_STATE")
            private_files.check_space(folder, "PLAYGROUND_STATE")
            # A socket left behind by a killed server would make the bind fail.
            self.uds.unlink(missing_ok=True)
            environment = {**quiet_environment(), **self.command.kept, **self.command.added}
            guarded = Guarded.start(self.command.argv, environment, self.log, log_bytes=self.log_bytes)
            # vLLM keeps itself on its cores of a CPU.
            if (self.placement.gpus or self.command.kind) and self.placement.cores:
                guarded.keep_on(self.placement.cores)
            return guarded
        except InvalidInput as error:
            raise EngineFailed(error.message_id, [], **error.params) from error
        except OSError as error:
            raise EngineFailed("host.no_process", [], detail=str(error)) from error

    async def failure(self, within_s: float) -> EngineFailed | None:
        """Why it died, if it is dead or dies within that time (a server outlives its core by seconds)."""
        if self._process is None or not await self._process.ended_within(within_s):
            return None
        assert self._process.exit_code is not None
        tail = LogTail(self.log)
        tail.read()
        return await RUNS.run(diagnose, tail.lines, self._process.exit_code, str(self.log))

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """SIGTERM to its whole group, SIGKILL after `grace_s`; returns when all of it is gone."""
        if self._process is not None:
            await self._process.end(grace_s)
        if self._client is not None:
            await self._client.aclose()
            self._client = None
        self.uds.unlink(missing_ok=True)

    async def _healthy(self) -> bool:
        if not self.reachable:
            return False
        try:
            return (await self.client.get("/health", timeout=5)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def _advance(self, stage: str, on_stage: Callable[[str], None]) -> None:
        if later(stage, self.stage):
            self.stage = stage
            self._stage_since = time.monotonic()
            on_stage(stage)
