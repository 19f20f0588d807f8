"""Makes an endpoint reachable for programs that do not support Unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .endpoint import Endpoint

BLOCK = 65536


@asynccontextmanager
async def reachable(endpoint: Endpoint) -> AsyncIterator[str]:
    """The endpoint's base URL over TCP. For a Unix socket this opens a loopback port that forwards to it: other
    programs on this machine could use it meanwhile, too."""
    if endpoint.uds is None:
        yield endpoint.url
        return
    uds, served = endpoint.uds, set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_joined(reader, writer, uds))
        served.add(task)
        task.add_done_callback(served.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{endpoint.base_path}"
    finally:
        server.close()
        # wait_closed would wait for ever where an engine keeps its connection open but reads no more.
        for task in served:
            task.cancel()
        await asyncio.gather(*served, return_exceptions=True)


async def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uds: str) -> None:
    """Copy both ways until both ends are closed."""
    try:
        with contextlib.suppress(OSError):
            engine_reader, engine_writer = await asyncio.open_unix_connection(uds)
            await asyncio.gather(_copy(reader, engine_writer), _copy(engine_reader, writer))
    finally:
        writer.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy until either end is closed."""
    try:
        with contextlib.suppress(OSError):
            while block := await source.read(BLOCK):
                target.write(block)
                await target.drain()
    finally:
        target.close()
