"""Processes that are killed, suspended or talk without an end, and a folder that is tidied."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from benchmarks.common import real_app, stand_in
from benchmarks.trials import Outcome, Probe, Trial, alive, family, terminated, until
from benchmarks.visitor import Visitor

from .states import ended, engine_that, history, in_time, said, streaming


def guard_killed(*, outer: bool) -> Callable[[Path], Awaitable[Outcome]]:
    """An engine and its worker ignore SIGTERM; one of each engine's two guards is killed, and then the app."""
    stubborn = "trap '' TERM; (trap '' TERM; exec sleep 600) &"

    async def run(place: Path) -> Outcome:
        with real_app(place, engine_that(place, engine=stubborn)) as (process, url):
            async with Visitor(url) as visitor:
                await visitor.arrive()
                await streaming(visitor, place)
                pids = family(process.pid)
                guards = [pid for pid in pids if any("guard.py" in word for word in psutil.Process(pid).cmdline())]
                guards = [pid for pid in guards if (psutil.Process(pid).ppid() == process.pid) == outer]
                for pid in guards:
                    os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.2)
                process.kill()
                await until(lambda: not alive(pids), within_s=15)
                left = alive(pids)
        for pid in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        seen = f"{len(guards)} guards killed; {len(left)} of {len(pids)} processes left"
        return Outcome(bool(guards) and not left, seen)

    return run


async def guards_suspended(place: Path) -> Outcome:
    """Both guards of each engine are stopped by SIGSTOP, and then the app is ended."""
    with real_app(place, stand_in(place, rate=20)) as (process, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            await streaming(visitor, place)
            pids = family(process.pid)
            guards = [pid for pid in pids if any("guard.py" in word for word in psutil.Process(pid).cmdline())]
            for pid in guards:
                os.kill(pid, signal.SIGSTOP)
            took, left = await terminated(process, pids)
    seen = f"{len(guards)} guards suspended; {said(took)}, {len(left)} of {len(pids)} processes left"
    return Outcome(bool(guards) and in_time(took) and not left, seen)


async def tidied(place: Path) -> Outcome:
    """Between two races somebody deletes what is in the state folder, and the database."""
    with real_app(place, stand_in(place, rate=500)) as (process, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            visitor.fill(asked_max_tokens=20)
            await visitor.press("race")
            await until(lambda: ended(place), within_s=30)
            entries = [entry for entry in (place / "state").iterdir() if entry.is_file() or entry.is_socket()]
            for entry in (*entries, place / "history.db", place / "history.db-wal", place / "history.db-shm"):
                entry.unlink(missing_ok=True)
            await visitor.press("race")
            await until(lambda: (place / "history.db").exists() and ended(place), within_s=30)
            statuses = [status for _, status in history(place)]
        running = process.poll() is None
    return Outcome(running and statuses == ["done"], f"the second race: {statuses}")


async def killed(place: Path) -> Outcome:
    """kill -9 in the middle of a race, three times; then a start without a visitor."""
    environment = stand_in(place, rate=50)
    left_over = 0
    for _ in range(3):
        with real_app(place, environment) as (process, url):
            async with Visitor(url) as visitor:
                await visitor.arrive()
                await streaming(visitor, place)
                pids = family(process.pid)
                process.kill()
                await until(lambda pids=pids: not alive(pids), within_s=5)
                left_over += len(alive(pids))
    with real_app(place, environment):
        await until(lambda: all(status != "running" for _, status in history(place)), within_s=5)
        statuses = [status for _, status in history(place)]
        with contextlib.closing(sqlite3.connect(place / "history.db")) as db:
            [(integrity,)] = db.execute("PRAGMA integrity_check").fetchall()
    seen = f"{statuses} without a visit, integrity {integrity}, {left_over} processes left"
    return Outcome(statuses == ["interrupted"] * 3 and integrity == "ok" and not left_over, seen)


async def long_log(place: Path) -> Outcome:
    """An engine that writes 300 MB of log."""
    noise = f"{sys.executable} -c \"import sys; [sys.stdout.write('x' * 999 + chr(10)) for _ in range(300000)]\";"
    with real_app(place, engine_that(place, engine=noise)) as (process, url):
        async with Visitor(url) as visitor, Probe(url) as probe:
            await visitor.arrive()
            before = psutil.Process(process.pid).memory_info().rss
            await visitor.press("race")
            await until(lambda: ended(place), within_s=60)
            grown = (psutil.Process(process.pid).memory_info().rss - before) / 1024**2
            logs = sum(file.stat().st_size for file in (place / "state").glob("*.log")) / 1024**2
            status = history(place)[0][1]
            worst = probe.worst_s
    seen = f"{status}; logs {logs:.0f} MiB, {grown:.0f} MiB more; others waited {worst:.1f} s at most"
    return Outcome(grown < 200 and logs < 200 and worst < 3, seen)


PROCESSES = (
    Trial("outer-guard-killed", "no process left", guard_killed(outer=True)),
    Trial("inner-guard-killed", "no process left", guard_killed(outer=False)),
    Trial("guards-suspended", "no process left", guards_suspended),
    Trial("tidied", "the second race is done", tidied),
    Trial("killed", "interrupted, ok, nothing left", killed),
    Trial("long-log", "bounded", long_log),
)
