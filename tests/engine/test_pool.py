"""One lease a host, and engines that are reused, replaced and stopped. The fake server stands in for vLLM."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from support.paths import CHILD_PATH, ROOT
from support.waiting import until

from playground.config import Config
from playground.domain.errors import EngineFailed, HostBusy, InvalidInput
from playground.engine.command import Command
from playground.engine.devices import Placement
from playground.engine.pool import EngineRequest, Holder, Pool
from playground.engine.server import Engine
from playground.i18n import LOCALES, say_message

FAKE = ROOT / "tests" / "support" / "fake_server.py"
ANNA = Holder("off / ngram", "a browser page", "12:34:56", "run-1")
BEN = Holder("16 / 64", "the command line", "12:35:00")
CPU = Placement("cpu", cores=(0,))


@pytest_asyncio.fixture
async def pool(config: Config) -> AsyncIterator[Pool]:
    made = Pool(config)
    yield made
    await made.stop_all()


# The lease


async def test_busy_says_who(pool: Pool) -> None:
    async with pool.lease(ANNA):
        assert pool.holder == ANNA
        with pytest.raises(HostBusy) as caught:
            async with pool.lease(BEN):
                pytest.fail("two runs at once")
    for locale in LOCALES:
        sentence = say_message(caught.value, locale)
        assert all(words in sentence for words in (ANNA.what, ANNA.where, ANNA.since))
    assert pool.holder is None
    async with pool.lease(BEN):
        assert pool.holder == BEN


async def test_lease_ends_with_a_failed_run(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError):
        async with pool.lease(ANNA):
            raise ZeroDivisionError
    async with pool.lease(BEN, wait=False):
        pass


async def test_first_come_first_served(pool: Pool) -> None:
    served = list[str]()

    async def run(name: str) -> None:
        async with pool.lease(Holder(name, "", ""), wait=True):
            served.append(name)
            await asyncio.sleep(0)

    # The lease is given back before the group waits for its tasks.
    async with asyncio.TaskGroup() as group, pool.lease(ANNA):
        for name in "1234":
            group.create_task(run(name))
            await asyncio.sleep(0)
        assert served == []
    assert served == ["1", "2", "3", "4"]


async def test_one_who_stops_waiting_holds_up_nobody(pool: Pool) -> None:
    async def run() -> None:
        async with pool.lease(BEN, wait=True):
            pass

    async with pool.lease(ANNA):
        impatient, patient = asyncio.create_task(run()), asyncio.create_task(run())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
    await patient
    assert impatient.cancelled()


OTHER = """
import asyncio
from playground.config import Config
from playground.domain.errors import HostBusy
from playground.engine.pool import Holder, Pool
from playground.i18n import say_message

async def main():
    try:
        async with Pool(Config.from_environment()).lease(Holder("other", "elsewhere", "00:00:00")):
            print("mine")
    except HostBusy as busy:
        print(say_message(busy))

asyncio.run(main())
"""


async def other_process() -> str:
    command = [sys.executable, "-c", OTHER]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def test_second_process_on_the_host(pool: Pool) -> None:
    async with pool.lease(ANNA):
        refused = await other_process()
    assert all(words in refused for words in (ANNA.what, ANNA.where, ANNA.since))
    assert await other_process() == "mine"


async def test_host_stays_locked_while_engines_live(pool: Pool, config: Config) -> None:
    """Another process would start its own beside them, and both would be slow."""
    async with pool.lease(ANNA):
        await provided(pool, wanted(config, "a"))
    assert "mine" not in await other_process()
    await pool.stop_all()
    assert await other_process() == "mine"


# The engines


def wanted(config: Config, name: str, *argv: str) -> EngineRequest:
    uds = EngineRequest.socket(config, name)
    default = (sys.executable, str(FAKE), "--uds", str(uds))
    return EngineRequest(name, Command(argv or default, {"PYTHONPATH": CHILD_PATH}), CPU)


async def provided(pool: Pool, *want: EngineRequest) -> list[Engine | EngineFailed | None]:
    return await pool.provide(want, lambda index, stage: None)


async def test_stages_are_told(pool: Pool, config: Config) -> None:
    told = list[tuple[int, str]]()
    [engine] = await pool.provide([wanted(config, "a")], lambda index, stage: told.append((index, stage)))
    assert isinstance(engine, Engine)
    assert told[0] == (0, "importing")
    assert told[-1] == (0, "ready")
    assert engine.ready_after_s is not None
    assert sum(each.seconds for each in engine.stages) == pytest.approx(engine.ready_after_s, abs=0.1)
    assert engine.uds.stat().st_mode & 0o170000 == 0o140000
    # Visitors of the machine can't reach in.
    assert engine.uds.parent.stat().st_mode & 0o077 == 0


async def test_unchanged_is_reused_and_the_other_replaced(pool: Pool, config: Config) -> None:
    a, b = await provided(pool, wanted(config, "a"), wanted(config, "b"))
    same, c = await provided(pool, wanted(config, "a"), wanted(config, "c"))
    assert same is a
    assert isinstance(b, Engine)
    assert isinstance(c, Engine)
    assert not b.alive
    assert not b.uds.exists()
    assert c.alive
    assert set(map(id, pool.engines)) == {id(a), id(c)}


async def test_a_dead_engine_is_not_reused(pool: Pool, config: Config) -> None:
    [first] = await provided(pool, wanted(config, "a"))
    assert isinstance(first, Engine)
    assert first._process is not None
    first._process.process.terminate()
    await until(lambda: not first.alive)
    [second] = await provided(pool, wanted(config, "a"))
    assert isinstance(second, Engine)
    assert second is not first
    assert second.alive


async def test_failure_stops_those_that_start_and_leaves_those_that_are_ready(pool: Pool, config: Config) -> None:
    [ready] = await provided(pool, wanted(config, "a"))
    code = "import sys; print('x'); sys.exit('ValueError: No available memory for the cache blocks.')"
    bad = wanted(config, "b", sys.executable, "-c", code)
    slow = wanted(config, "c", sys.executable, "-c", "import time; time.sleep(60)")
    good, failed, stopped = await provided(pool, wanted(config, "a"), bad, slow)
    assert good is ready
    assert good.alive
    assert isinstance(failed, EngineFailed)
    assert failed.message_id == "failure.no_kv_memory"
    assert failed.log_tail == ["x", "ValueError: No available memory for the cache blocks."]
    assert stopped is None
    assert pool.engines == [good]


@pytest.mark.parametrize(
    ("gpus", "sized", "at_once"),
    [
        # Two on one card: one of them measures what is free there.
        ([(0,), (0,)], [False, True], 1),
        ([(0,), (0,)], [True, True], 2),
        ([(0,), (1,), (2,)], [False, False, False], 3),
        # Each pair has a card in common.
        ([(0, 1), (1, 2), (2, 0)], [False, True, True], 2),
        ([(1, 0), (0, 1)], [False, False], 1),
    ],
)
async def test_who_starts_at_once_on_gpus(
    pool: Pool, config: Config, gpus: list[tuple[int, ...]], sized: list[bool], at_once: int
) -> None:
    requests = [
        replace(wanted(config, str(number)), placement=Placement("cuda", gpus=its_gpus), sized=its_size)
        for number, (its_gpus, its_size) in enumerate(zip(gpus, sized, strict=True))
    ]
    starting, most = set[int](), 0

    def on_stage(index: int, stage: str) -> None:
        nonlocal most
        (starting.discard if stage == "ready" else starting.add)(index)
        most = max(most, len(starting))

    engines = await pool.provide(requests, on_stage)
    assert all(isinstance(engine, Engine) for engine in engines)
    assert most == at_once


async def test_never_ready(config: Config) -> None:
    impatient = Config(state=config.state, start_timeout_s=5)
    pool = Pool(impatient)
    code = "import time; print('INFO Starting to load model m...', flush=True); time.sleep(60)"
    [failed] = await provided(pool, wanted(config, "a", sys.executable, "-c", code))
    assert isinstance(failed, EngineFailed)
    assert failed.message_id == "failure.timeout"
    assert "while loading weights" in say_message(failed)
    for locale in LOCALES:
        assert say_message(failed, locale)


async def test_stop_while_starting(pool: Pool, config: Config) -> None:
    """Two start, and a third waits for its turn on a card."""
    slow = [wanted(config, name, sys.executable, "-c", "import time; time.sleep(60)") for name in "abc"]
    card = Placement("cuda", gpus=(0,), sharing=2)
    task = asyncio.create_task(provided(pool, slow[0], *(replace(each, placement=card) for each in slow[1:])))
    await until(lambda: sum(engine.alive for engine in pool.engines) == 2)
    engines = pool.engines
    assert len(engines) == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(engine.alive for engine in engines)
    assert pool.engines == []


async def test_idle_engines_are_stopped(config: Config) -> None:
    pool = Pool(Config(state=config.state, idle_stop_s=0.2))
    async with pool.lease(ANNA):
        [engine] = await provided(pool, wanted(config, "a"))
    assert isinstance(engine, Engine)
    watch = asyncio.create_task(pool.stop_when_idle())
    await until(lambda: not engine.alive)
    watch.cancel()
    assert pool.engines == []


async def test_engines_in_use_are_not_idle(config: Config) -> None:
    pool = Pool(Config(state=config.state, idle_stop_s=0.05))
    watch = asyncio.create_task(pool.stop_when_idle())
    async with pool.lease(ANNA):
        [engine] = await provided(pool, wanted(config, "a"))
        # Many times the limit.
        await asyncio.sleep(0.5)
        assert isinstance(engine, Engine)
        assert engine.alive
    watch.cancel()
    await pool.stop_all()


def test_socket_paths_are_short(config: Config) -> None:
    assert len(str(EngineRequest.socket(Config(state=config.state), "0123456789" + "2"))) < 107


@pytest.mark.parametrize("folder", ["x" * 90, "你" * 30])
def test_a_state_folder_too_long_for_sockets(tmp_path: Path, folder: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Pool(Config(state=tmp_path / folder))
    assert caught.value.message_id == "private.too_long"
    for locale in LOCALES:
        assert folder in say_message(caught.value, locale)
