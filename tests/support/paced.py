"""The benchmarks' paced server inside a test: it keeps connections, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.paced_server import Answer, Connection, Pacer
from playground.load.endpoint import Endpoint


@dataclass
class Seen:
    """`asked` has a request's arrival (perf_counter) and body; `answers` has their progress, in the same order."""

    endpoint: Endpoint
    connections: int = 0
    asked: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    @property
    def most_at_once(self) -> int:
        """The greatest number of answers under way at one time."""
        spans = [(answer.arrived, answer.written[-1]) for answer in self.answers]
        return max(sum(begin <= moment < end for begin, end in spans) for moment, _ in spans)


@asynccontextmanager
async def paced(
    *, first_ms: float = 10, gap_ms: float = 2, per_chunk: int = 1, uds: Path | None = None
) -> AsyncIterator[Seen]:
    class Watched(Pacer):
        def begin(self, answer: Answer) -> None:
            seen.answers.append(answer)
            super().begin(answer)

    class Remembering(Connection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            seen.connections += 1
            super().connection_made(transport)

        def _answer(self, body: dict[str, Any], arrived: float, chat: bool) -> None:
            seen.asked.append((time.perf_counter(), body))
            super()._answer(body, arrived, chat)

    pacer = Watched(first_ms, gap_ms, per_chunk)
    loop = asyncio.get_running_loop()
    if uds is None:
        server = await loop.create_server(lambda: Remembering(pacer), "127.0.0.1", 0)
        endpoint = Endpoint("paced", host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    else:
        server = await loop.create_unix_server(lambda: Remembering(pacer), str(uds))
        endpoint = Endpoint("paced", uds=str(uds))
    seen = Seen(endpoint)
    try:
        yield seen
    finally:
        server.close()
