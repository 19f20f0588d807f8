"""Runs go on, whatever becomes of the history, and what can't be saved stays at hand."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from support.endpoints import at, attached
from support.fake_server import FakeServer, Steady
from support.races import SIDES, finished, raced, workload
from support.sweep_cases import case, sweep_over
from support.waiting import until

from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.engine.pool import Holder
from playground.i18n import say_message
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.store import READERS, History, file


def break_history(host: Host) -> None:
    """From now on, every operation finds a file that is no database."""
    host.history.open()
    for suffix in ("", "-wal", "-shm"):
        host.config.db.with_name(host.config.db.name + suffix).unlink(missing_ok=True)
    host.config.db.write_bytes(b"no database" * 1000)


async def test_a_run_goes_on_without_a_history(host: Host) -> None:
    break_history(host)
    comparison = await raced(host)
    assert comparison.run.status == "done"
    assert all(side.requests[0].output_text for side in comparison.run.sides)
    assert comparison.run.problem is not None
    assert comparison.run.problem.message_id == "run.unsaved"
    assert "not a database" in say_message(comparison.run.problem)
    await until(lambda: host.pool.holder is None)
    assert host.unsaved_record(comparison.id) is comparison.run
    with pytest.raises(PlaygroundError):
        host.history.get(comparison.id)


async def test_a_full_disk_is_said(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(history: History, run: object) -> None:
        raise PlaygroundError("history.unusable", path="h.db", detail="database or disk is full")

    monkeypatch.setattr(History, "finish", full)
    comparison = await raced(host)
    assert comparison.run.status == "done"
    assert comparison.unsaved is not None
    # What was written before says that it is over.
    [line] = host.history.summaries()
    assert line.status == "failed"


async def test_a_history_that_comes_back_has_the_whole_run(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "WRITE_TIMEOUT_S", 0.05)
    host.history.open()
    locking = sqlite3.connect(host.config.db, isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    comparison = host.comparison(SIDES, workload())
    real = comparison.saving.finish

    async def finish(run: object) -> None:
        locking.execute("ROLLBACK")
        await real(run)  # type: ignore[arg-type]

    monkeypatch.setattr(comparison.saving, "finish", finish)
    await host.start(comparison, "a test")
    await finished(comparison)
    locking.close()
    assert comparison.unsaved is None
    assert host.history.get(comparison.id) == comparison.run
    assert [line.id for line in host.history.summaries()] == [comparison.id]


async def test_only_the_last_unsaved_runs_are_kept(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.runs.host.MOST_UNSAVED", 1)
    break_history(host)
    first, second = await raced(host), await raced(host)
    await until(lambda: host.pool.holder is None)
    assert [job.id for job in host.unsaved()] == [second.id]
    assert host.unsaved_record(first.id) is None


async def test_a_sweep_goes_on_without_a_history(host: Host) -> None:
    break_history(host)
    async with FakeServer(Steady()) as server:
        sides = case(attached("a", at(server)), attached("b", at(server)), budget_s=0.1)
        sweep = sweep_over(sides, 1, 2)
        assert host.estimate(sweep).known_starts == 0
        sweeping = host.sweep_run(sweep)
        await host.start(sweeping, "a test")
        await until(lambda: sweeping.finished and host.pool.holder is None)
    assert sweep.status == "done"
    assert [point.run is not None and point.run.status for point in sweep.points] == ["done", "done"]
    assert sweep.problem is not None
    assert sweep.problem.message_id == "run.unsaved"
    assert host.unsaved_record(sweep.id) is sweep
    point = sweep.points[1].run
    assert point is not None
    assert host.unsaved_record(point.id) is point


async def test_the_watch_for_idle_engines_outlives_an_error(
    config: Config, fake_runtime: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.runs.host.WATCH_AGAIN_S", 0)
    host, calls = Host(config), asyncio.Queue[None]()

    async def fail() -> None:
        calls.put_nowait(None)
        raise OSError("an engine's folder is gone")

    monkeypatch.setattr(host.pool, "stop_when_idle", fail)
    host.open()
    async with asyncio.timeout(30):
        await calls.get()
        await calls.get()
    await host.close()


# What a killed process left


def cut_off(host: Host) -> Comparison:
    comparison = host.comparison(SIDES, workload())
    host.history.begin(comparison.run)
    return comparison


def test_runs_are_marked_at_the_start(config: Config, fake_runtime: None) -> None:
    host = Host(config)
    comparisons = [cut_off(host) for _ in range(24)]
    Host(config).tidy_up()
    assert len(comparisons) == 24
    assert {line.status for line in host.history.summaries()} == {"interrupted"}


async def test_another_process_s_run_is_not_marked(host: Host, config: Config) -> None:
    async with host.pool.lease(Holder("what", "where", "now")):
        cut_off(host)
        Host(config).tidy_up()
        assert [line.status for line in host.history.summaries()] == ["running"]


async def test_a_database_locked_at_the_start_stops_nothing(
    config: Config, fake_runtime: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening is not repeated by what failed in it: engines stop when idle, and marking is made up for."""
    monkeypatch.setattr(file, "WRITE_TIMEOUT_S", 0.05)
    host = Host(config)
    left = cut_off(host)
    locking = sqlite3.connect(config.db, isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    with pytest.raises(PlaygroundError) as caught:
        host.tidy_up()
    assert caught.value.message_id == "history.locked"
    idle = asyncio.Event()

    async def stop_when_idle() -> None:
        idle.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(host.pool, "stop_when_idle", stop_when_idle)
    host.open()
    async with asyncio.timeout(5):
        await idle.wait()
    locking.execute("ROLLBACK")
    locking.close()
    comparison = await raced(host)
    statuses = {line.id: line.status for line in host.history.summaries()}
    assert statuses == {left.id: "interrupted", comparison.id: "done"}
    await host.close()


def test_a_new_host_does_not_touch_the_database(config: Config) -> None:
    assert not config.db.exists()
    Host(config)
    assert not config.db.exists()


async def test_the_search_index_is_kept(host: Host) -> None:
    comparison = await raced(host)
    await until(lambda: host.pool.holder is None)
    await until(lambda: not host.history.index())
    text = comparison.run.sides[0].requests[0].output_text[:5]
    assert [line.id for line in host.history.summaries(text=text)] == [comparison.id]


async def test_writing_waits_for_no_reader(host: Host) -> None:
    """Forty searches that stand still: a race begins and is saved nevertheless."""
    go_on = threading.Event()
    searches = [asyncio.create_task(READERS.run(go_on.wait)) for _ in range(40)]
    try:
        comparison = await raced(host)
        assert host.history.get(comparison.id) == comparison.run
        assert not any(search.done() for search in searches)
    finally:
        go_on.set()
    await asyncio.gather(*searches)
