"""Connections that are never finished."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from benchmarks.common import app
from benchmarks.trials import Outcome, Trial


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def half_open(place: Path) -> Outcome:
    # The app inherits the usual limit: only this process may have more.
    with app(place, rate=200) as (_, url), many_files():
        port = int(url.rpartition(":")[2])
        writers = []
        for _ in range(1100):
            with contextlib.suppress(OSError, TimeoutError):
                _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 2)
                writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
                writers.append(writer)
        since = time.monotonic()
        status: int | str
        try:
            async with httpx.AsyncClient(timeout=20) as client:
                status = (await client.get(url)).status_code
        except httpx.HTTPError as error:
            status = type(error).__name__
        took = time.monotonic() - since
        for writer in writers:
            writer.close()
    return Outcome(status == 200, f"{len(writers)} half-open; GET / answered {status} after {took:.1f} s")


CONNECTIONS = (Trial("half-open", "200", half_open),)
