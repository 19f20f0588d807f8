"""Stop and the close of the host end everything within seconds, whatever is under way."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from support.endpoints import at, attached
from support.fake_server import FakeServer, Reply, Steady
from support.races import SIDES, streaming, workload
from support.sweep_cases import case, sweep_over
from support.waiting import gone, until

from playground.config import Config
from playground.domain.errors import WorkFailed
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.engine.runtime import Runtime
from playground.models import fetch
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.sides import preflight
from playground.workers import CHECKS

# The contract is 5 s; a loaded machine may take longer to come round to it.
SECONDS = 15


# What this process had started before the test: servers of other tests, which last as long as the session.
_elders: set[psutil.Process] = set()


@pytest.fixture(autouse=True)
def elders() -> None:
    _elders.clear()
    _elders.update(psutil.Process().children())


def children() -> set[psutil.Process]:
    """Everything that the test started and that still runs."""
    roots = set(psutil.Process().children()) - _elders
    processes = set[psutil.Process]()
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes |= {root, *root.children(recursive=True)}
    return {process for process in processes if not gone(process.pid)}


def runs(word: str) -> bool:
    """Whether a process of ours has this word on its command line."""
    lines = []
    for child in children():
        with contextlib.suppress(psutil.NoSuchProcess):
            lines.append(" ".join(child.cmdline()))
    return any(word in line for line in lines)


@asynccontextmanager
async def ending_in_time() -> AsyncIterator[None]:
    """The block ends in time, and leaves no process behind."""
    async with asyncio.timeout(SECONDS):
        yield
        await until(lambda: not children())


async def silent(reply: Reply) -> None:
    await reply.closed.wait()


def runtime(python: Path) -> Runtime:
    return Runtime(
        "default", python, "0.32.0", "cpu", "none", None, frozenset({"--dtype", "--speculative-config"})
    )


@pytest.fixture
def deaf(tmp_path: Path) -> Path:
    """An interpreter that does nothing, and does not end at SIGTERM."""
    script = tmp_path / "deaf"
    script.write_text("#!/bin/sh\ntrap '' TERM\necho deaf\nwhile true; do sleep 0.1; done\n")
    script.chmod(0o700)
    return script


async def test_while_an_endpoint_is_probed(host: Host) -> None:
    async with FakeServer(silent) as server:
        sides = (attached("a", at(server)), attached("b", at(server)))
        comparison = host.comparison(sides, workload())
        await host.start(comparison, "a test")
        await until(lambda: bool(server.replies))
        async with ending_in_time():
            await host.close()
    assert comparison.run.status == "stopped"


@pytest.mark.parametrize("by", ["close", "leaving"])
async def test_while_a_runtime_is_probed(config: Config, deaf: Path, by: str) -> None:
    host = Host(replace(config, runtimes={"default": deaf}))
    host.open()
    (config.models / "model").mkdir(parents=True)
    starting = asyncio.create_task(host.start(host.comparison(SIDES, workload()), "a test"))
    await until(lambda: runs("deaf"))
    async with ending_in_time():
        if by == "leaving":
            starting.cancel()
            await asyncio.wait([starting])
            await until(lambda: not children())
        await host.close()
    await asyncio.wait([starting])


@contextmanager
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A hub that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        monkeypatch.delenv("HF_HUB_OFFLINE")
        yield listening


def asked(hub: socket.socket) -> bool:
    return bool(select.select([hub], [], [], 0)[0])


FROM_HUB = tuple(
    Side(label=side.label, engine=side.engine.model_copy(update={"target": "owner/name"}))
    for side in SIDES
    if isinstance(side.engine, EngineSettings)
)


@pytest.mark.parametrize("by", ["close", "stop"])
async def test_while_the_hub_is_asked(host: Host, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    with silent_hub(monkeypatch) as hub:
        comparison = host.comparison(FROM_HUB, workload())
        await host.start(comparison, "a test")
        await until(lambda: asked(hub))
        async with ending_in_time():
            if by == "stop":
                comparison.stop()
                await until(lambda: comparison.finished and not children())
            await host.close()
    assert comparison.run.status == "stopped"


async def test_a_fetch_is_ended_by_leaving_it(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of them once used up the threads of everything else."""
    with silent_hub(monkeypatch) as hub:
        for _ in range(2):
            task = asyncio.create_task(fetch.ensure(config, "owner/name", Path(sys.executable), lambda _: None))
            await until(lambda: asked(hub))
            hub.accept()[0].close()
            task.cancel()
            async with ending_in_time():
                await asyncio.wait([task])


@pytest.mark.parametrize("by", ["close", "stop"])
async def test_while_an_engine_starts_that_ignores_sigterm(
    host: Host, monkeypatch: pytest.MonkeyPatch, deaf: Path, by: str
) -> None:
    monkeypatch.setattr("playground.engine.runtime.probe", lambda config, name: runtime(deaf))
    comparison = host.comparison(SIDES, workload())
    await host.start(comparison, "a test")
    await until(lambda: [log.read_text() for log in host.config.state.glob("*.log")] == ["deaf\n"] * 2)
    async with ending_in_time():
        if by == "stop":
            comparison.stop()
            await until(lambda: comparison.finished and not children())
        await host.close()
    assert comparison.run.status == "stopped"


async def test_while_answers_stream_and_others_wait(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(100_000))
    await host.start(comparison, "a test")
    waiting = [host.comparison(SIDES, workload()) for _ in range(3)]
    for other in waiting:
        await host.start(other, "a test", wait=True)
    await streaming(comparison)
    async with ending_in_time():
        await host.close()
    stored = host.history.get(comparison.id)
    assert stored is not None
    assert stored.status == "stopped"
    assert all(side.requests[0].chunks for side in stored.sides)
    assert {other.run.status for other in waiting} == {"stopped"}


async def test_while_a_stream_is_silent(host: Host) -> None:
    async with FakeServer(silent) as server:
        comparison = await _measuring(host, server, Steady())
        async with ending_in_time():
            await host.close()
    assert comparison.run.status == "stopped"


async def _measuring(host: Host, server: FakeServer, script: Steady) -> Comparison:
    server._script = script
    profile = ConcurrencyProfile(concurrency=2, requests=1000)
    sides = (attached("a", at(server)), attached("b", at(server)))
    comparison = host.comparison(sides, workload(200), Measurement(profile=profile))
    await host.start(comparison, "a test")
    await until(lambda: comparison.live.phase in ("warming_up", "measuring"))
    server._script = silent
    return comparison


async def test_between_the_points_of_a_sweep(host: Host) -> None:
    async with FakeServer(Steady(rate=2000)) as server:
        made = case(attached("a", at(server)), attached("b", at(server)), tokens=2)
        sweeping = host.sweep_run(sweep_over(made, *range(1, 20)))
        await host.start(sweeping, "a test")
        await until(lambda: any(point.settled for point in sweeping.sweep.points))
        async with ending_in_time():
            await host.close()
    assert sweeping.finished


async def test_a_run_that_never_ends_is_left_behind(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a database that hangs."""
    comparison = host.comparison(SIDES, workload())
    over = asyncio.Event()

    async def execute() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    monkeypatch.setattr(comparison, "execute", execute)
    await host.start(comparison, "a test")
    async with ending_in_time():
        await host.close()
    over.set()


async def test_so_many_wait_in_line_and_no_more(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.config = replace(host.config, limits=replace(host.config.limits, waiting_runs=2))
    first = host.comparison(SIDES, workload(100_000))
    await host.start(first, "a test")
    for _ in range(2):
        await host.start(host.comparison(SIDES, workload()), "a test", wait=True)
    with pytest.raises(WorkFailed, match="waiting_line_full"):
        await host.start(host.comparison(SIDES, workload()), "a test", wait=True)


async def test_checks_at_a_silent_hub_do_not_delay_a_race(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    with silent_hub(monkeypatch) as hub:
        run = host.comparison(FROM_HUB, workload()).run
        checks = [asyncio.create_task(CHECKS.run(preflight.examine, host.config, run)) for _ in range(30)]
        await until(lambda: asked(hub))
        began = time.monotonic()
        comparison = host.comparison(SIDES, workload(5))
        await host.start(comparison, "a test")
        await until(lambda: comparison.finished)
        assert comparison.run.status == "done"
        assert time.monotonic() - began < 2 * SECONDS
        assert not any(check.done() for check in checks)
        for check in checks:
            check.cancel()
        async with ending_in_time():
            await asyncio.wait(checks)
            await host.close()
