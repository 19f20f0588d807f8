"""Databases that are locked, broken or of another version."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.common import ROOT, real_app, stand_in
from benchmarks.trials import Outcome, Probe, Trial, until
from benchmarks.visitor import Visitor

from .states import START_S, ended, history


def page_with(
    break_it: Callable[[Path], contextlib.AbstractContextManager[object]],
) -> Callable[[Path], Awaitable[Outcome]]:
    """The page opens and a race runs while the database is broken."""

    async def run(place: Path) -> Outcome:
        with break_it(place), real_app(place, stand_in(place, rate=200)) as (process, url):
            async with Visitor(url, timeout_s=20) as visitor, Probe(url) as probe:
                since = time.monotonic()
                status = (await visitor.client.get("/")).status_code
                await visitor.arrive()
                opened = time.monotonic() - since
                visitor.fill(asked_max_tokens=20)
                message = await visitor.press("race")
                await asyncio.sleep(3)
                again = (await visitor.client.get("/")).status_code
                worst = probe.worst_s
                running = process.poll() is None
        began = bool(message.get("success"))
        seen = f"page {status} after {opened:.1f} s, then {again}; race {'began' if began else 'failed'}; "
        seen += f"others waited {worst:.1f} s at most"
        return Outcome(running and status == again == 200 and began and worst < 3, seen)

    return run


def sqlite_lock(place: Path) -> contextlib.AbstractContextManager[object]:
    """Another process holds the database for itself."""
    holder = sqlite3.connect(place / "history.db", isolation_level=None)
    holder.execute("CREATE TABLE IF NOT EXISTS theirs (x)")
    holder.execute("BEGIN EXCLUSIVE")
    return contextlib.closing(holder)


def garbage(place: Path) -> contextlib.AbstractContextManager[object]:
    (place / "history.db").write_bytes(os.urandom(8192))
    return contextlib.nullcontext()


def a_folder(place: Path) -> contextlib.AbstractContextManager[object]:
    (place / "history.db").mkdir()
    return contextlib.nullcontext()


async def newer_row(place: Path) -> Outcome:
    """One run's row is of a newer version, and one is cut off."""
    with real_app(place, stand_in(place, rate=500)) as (_, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            visitor.fill(asked_max_tokens=20)
            for number in range(3):
                await visitor.press("race")
                await until(lambda n=number: ended(place, n + 1), within_s=30)
    with contextlib.closing(sqlite3.connect(place / "history.db")) as db, db:
        ids = [run_id for run_id, _ in history(place)]
        db.execute('UPDATE runs SET workload = \'{"from": "the future"}\' WHERE id = ?', ids[:1])
        db.execute("UPDATE runs SET workload = '{' WHERE id = ?", ids[1:2])
    listed = await command(place, "history", "list")
    named = [run_id in listed.stdout for run_id in ids]
    traceback = "Traceback" in listed.stdout + listed.stderr
    seen = f"{sum(named)} of 3 runs listed, exit code {listed.returncode}{', a traceback' if traceback else ''}"
    return Outcome(all(named) and listed.returncode == 0 and not traceback, seen)


async def command(place: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`python -m playground ...` on this place's history."""
    environment = {
        **os.environ,
        "PLAYGROUND_DB": str(place / "history.db"),
        "PLAYGROUND_STATE": str(place / "state"),
        **more,
    }
    line = [sys.executable, "-m", "playground", *words]
    return await asyncio.to_thread(
        subprocess.run, line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=START_S
    )


DATABASES = (
    Trial("database-locked", "the page goes on", page_with(sqlite_lock)),
    Trial("database-garbage", "the page goes on", page_with(garbage)),
    Trial("database-a-folder", "the page goes on", page_with(a_folder)),
    Trial("newer-row", "all listed", newer_row),
)
