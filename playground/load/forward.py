"""An endpoint's address for programs that know no Unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .endpoint import Endpoint

BLOCK = 65536


@asynccontextmanager
async def reachable(endpoint: Endpoint) -> AsyncIterator[str]:
    """Its base URL over TCP. For a Unix socket that of a port on loopback, which leads there meanwhile."""
    if endpoint.uds is None:
        yield endpoint.url
        return
    uds = endpoint.uds

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            engine_reader, engine_writer = await asyncio.open_unix_connection(uds)
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, engine_writer))
                group.create_task(_copy(engine_reader, writer))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}{endpoint.base_path}"


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Until either end is closed."""
    with contextlib.suppress(OSError):
        while block := await source.read(BLOCK):
            target.write(block)
            await target.drain()
    target.close()
