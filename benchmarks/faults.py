"""What breaks by itself: slow hubs, engines that hang, databases that are locked or broken, killed processes.

usage: python -m benchmarks.faults [NAME ...]      (all without names; about three minutes)

Stand-in engines, loopback only; each fault gets an app of its own. The exit code is 1 if one is not borne.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import psutil

from benchmarks.common import ROOT, folder, free_port, real_app, stand_in
from benchmarks.trials import Outcome, Probe, Trial, alive, family, main, terminated, until
from benchmarks.visitor import Visitor

END_S = 5.0
# Starting Python, its imports and the page's; the machine may be busy.
START_S = 60.0


def history(place: Path) -> list[tuple[str, str]]:
    """Ids and statuses of the runs."""
    with contextlib.closing(sqlite3.connect(place / "history.db")) as db:
        return db.execute("SELECT id, status FROM runs ORDER BY created_at").fetchall()


def ended(place: Path, count: int = 1) -> bool:
    """Whether so many runs have ended."""
    return sum(status != "running" for _, status in history(place)) >= count


def engine_that(place: Path, *, probe: str = "", engine: str = "") -> dict[str, str]:
    """The environment of a playground whose runtime runs these shell commands first: `probe` when it is asked for
    its flags, `engine` when it starts an engine."""
    environment = stand_in(place, rate=20)
    runtime = place / "python"
    text = runtime.read_text()
    runtime.write_text(
        text.replace('*"probe.py flags") ', f'*"probe.py flags") {probe} ').replace(
            "*) shift 2;", f"*) {engine} shift 2;"
        )
    )
    return environment


@contextlib.asynccontextmanager
async def hub(answer: str) -> AsyncIterator[str]:
    """A hub that answers HEAD, and to whatever else is asked of it sends `answer` and then nothing more."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"HEAD / "):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            else:
                writer.write(answer.encode())
                await writer.drain()
                await reader.read()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        # Connections that still hang end with the loop.
        server.close()


def in_time(took_s: float | None) -> bool:
    """Whether it ended within the time that is promised; a second more for a busy machine."""
    return took_s is not None and took_s < END_S + 1


def said(took_s: float | None) -> str:
    return "did not end" if took_s is None else f"ended after {took_s:.1f} s"


# The end, in every state


def ended_while(
    reach: Callable[[Visitor, Path], Awaitable[None]],
    runtime: Callable[[Path], dict[str, str]] = lambda place: stand_in(place, rate=20),
    *,
    slow_hub: bool = False,
) -> Callable[[Path], Awaitable[Outcome]]:
    """SIGTERM once the visitor has brought the app into a state."""

    async def run(place: Path) -> Outcome:
        async with hub("HTTP/1.1 200 OK\r\n") as address:
            more = runtime(place) | ({"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"} if slow_hub else {})
            with real_app(place, more) as (process, url):
                async with Visitor(url) as visitor:
                    await visitor.arrive()
                    await reach(visitor, place)
                    pids = family(process.pid)
                    took, left = await terminated(process, pids)
                if took is None:
                    process.kill()
        return Outcome(in_time(took) and not left, f"{said(took)}, {len(left)} of {len(pids)} processes left")

    return run


async def idle(visitor: Visitor, place: Path) -> None:
    await visitor.press("check-first")


async def asking_the_runtime(visitor: Visitor, place: Path) -> None:
    await visitor.send("race")
    await asyncio.sleep(2)


async def fetching(visitor: Visitor, place: Path) -> None:
    visitor.fill(side0_target="somebody/model", side1_target="somebody/model")
    await visitor.send("race")
    await asyncio.sleep(3)


async def starting(visitor: Visitor, place: Path) -> None:
    await visitor.press("race")
    await until(lambda: any((place / "state").glob("*.log")), within_s=20)
    await asyncio.sleep(0.5)


async def streaming(visitor: Visitor, place: Path) -> None:
    visitor.fill(asked_max_tokens=1900)
    await visitor.press("race")
    await until(lambda: any((place / "state").glob("*.sock")), within_s=20)
    await asyncio.sleep(3)


async def measuring(visitor: Visitor, place: Path) -> None:
    await visitor.press("measure")
    await asyncio.sleep(4)


async def in_line(visitor: Visitor, place: Path) -> None:
    await streaming(visitor, place)
    for _ in range(3):
        await visitor.send("wait")
    await asyncio.sleep(0.5)


# Work that hangs


async def six_stops(place: Path) -> Outcome:
    """Six times: a race that fetches from a slow hub, and Stop."""
    async with hub("HTTP/1.1 200 OK\r\n") as address:
        more = stand_in(place, rate=200) | {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        with real_app(place, more) as (_, url):
            async with Visitor(url) as visitor, Probe(url) as probe:
                await visitor.arrive()
                visitor.fill(side0_target="somebody/model", side1_target="somebody/model")
                for number in range(6):
                    await visitor.press("race")
                    await asyncio.sleep(1)
                    await visitor.press("stop")
                    await until(lambda n=number: ended(place, n + 1), within_s=10)
                    if number == 5:
                        worst = probe.worst_s
                statuses = [status for _, status in history(place)]
                async with Visitor(url) as other:
                    await other.arrive()
                    since = time.monotonic()
                    await other.press("check-first")
                    took = time.monotonic() - since
    seen = f"{statuses.count('stopped')} of 6 stopped; others waited {worst:.1f} s at most"
    seen += f"; then a check took {took:.1f} s"
    return Outcome(statuses.count("stopped") == 6 and worst < 3, seen)


async def thirty_checks(place: Path) -> Outcome:
    """Thirty visitors check a model that the hub never answers for; somebody else races."""
    async with hub("HTTP/1.1 200 OK\r\n") as address:
        more = stand_in(place, rate=200) | {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        with real_app(place, more) as (_, url):
            async with contextlib.AsyncExitStack() as stack:
                visitors = [await stack.enter_async_context(Visitor(url)) for _ in range(30)]
                racer = await stack.enter_async_context(Visitor(url))
                await racer.arrive()
                for visitor in visitors:
                    await visitor.arrive()
                    visitor.fill(side0_target="somebody/model", side1_target="somebody/model")
                    await visitor.send("check-first")
                await asyncio.sleep(1)
                since = time.monotonic()
                await asyncio.wait_for(racer.press("race"), 60)
                took = time.monotonic() - since
    return Outcome(took < 5, f"the race began after {took:.1f} s")


# Processes


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


# The database


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


# The start


def started_with(**more: str) -> Callable[[Path], Awaitable[Outcome]]:
    """The app either serves or says in a sentence why not. `{place}` in a value stands for the folder."""

    async def run(place: Path) -> Outcome:
        (place / "file").write_text("a file")
        values = {name: value.format(place=place) for name, value in more.items()}
        port = free_port()
        environment = {**os.environ, **stand_in(place, rate=200), "PLAYGROUND_DB": str(place / "history.db")}
        environment |= {"PLAYGROUND_STATE": str(place / "state"), "PLAYGROUND_PORT": str(port), **values}
        line = [sys.executable, "app.py"]
        process = subprocess.Popen(  # noqa: ASYNC220
            line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        host = f"[{values['PLAYGROUND_HOST']}]" if ":" in values.get("PLAYGROUND_HOST", "") else "127.0.0.1"
        serves = False
        deadline = time.monotonic() + START_S
        async with httpx.AsyncClient() as client:
            while process.poll() is None and not serves and time.monotonic() < deadline:
                with contextlib.suppress(httpx.HTTPError):
                    serves = (await client.get(f"http://{host}:{port}/")).is_success
                await asyncio.sleep(0.2)
        process.terminate()
        output, _ = await asyncio.to_thread(process.communicate, timeout=30)
        text = output.decode(errors="replace").strip()
        last = text.splitlines()[-1][:150] if text else ""
        seen = "serves" if serves else f"exit code {process.returncode}: {last}"
        return Outcome("Traceback" not in text and (serves or bool(text)), seen)

    return run


FAULTS = (
    Trial("end-idle", "5 s", ended_while(idle)),
    Trial(
        "end-asking-runtime",
        "5 s",
        ended_while(asking_the_runtime, lambda place: engine_that(place, probe="sleep 120;")),
    ),
    Trial("end-fetching", "5 s", ended_while(fetching, slow_hub=True)),
    Trial(
        "end-starting",
        "5 s",
        ended_while(starting, lambda place: engine_that(place, engine="trap '' TERM; sleep 120;")),
    ),
    Trial("end-streaming", "5 s", ended_while(streaming)),
    Trial("end-measuring", "5 s", ended_while(measuring)),
    Trial("end-in-line", "5 s", ended_while(in_line)),
    Trial("six-stops", "all stopped", six_stops),
    Trial("thirty-checks", "within 5 s", thirty_checks),
    Trial("outer-guard-killed", "no process left", guard_killed(outer=True)),
    Trial("inner-guard-killed", "no process left", guard_killed(outer=False)),
    Trial("guards-suspended", "no process left", guards_suspended),
    Trial("tidied", "the second race is done", tidied),
    Trial("killed", "interrupted, ok, nothing left", killed),
    Trial("long-log", "bounded", long_log),
    Trial("database-locked", "the page goes on", page_with(sqlite_lock)),
    Trial("database-garbage", "the page goes on", page_with(garbage)),
    Trial("database-a-folder", "the page goes on", page_with(a_folder)),
    Trial("newer-row", "all listed", newer_row),
    Trial("ipv6", "serves, or a sentence", started_with(PLAYGROUND_HOST="::1")),
    Trial("no-such-address", "a sentence", started_with(PLAYGROUND_HOST="203.0.113.7")),
    Trial("state-a-file", "a sentence", started_with(PLAYGROUND_STATE="{place}/file")),
    Trial("state-unwritable", "a sentence", started_with(PLAYGROUND_STATE="/proc/playground")),
)


if __name__ == "__main__":
    sys.exit(main(FAULTS, folder))
