"""What the history says, runtimes and hubs that hang, and how an end is judged."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.common import stand_in
from benchmarks.trials import until
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


async def streaming(visitor: Visitor, place: Path) -> None:
    visitor.fill(asked_max_tokens=1900)
    await visitor.press("race")
    await until(lambda: any((place / "state").glob("*.sock")), within_s=20)
    await asyncio.sleep(3)
