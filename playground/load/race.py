"""Race: one request to each endpoint, all at once, parsed as it goes."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from typing import Any, cast

from .connection import connect, http_request
from .output import emit
from .timed_request import TimedRequest


class Request(asyncio.Protocol):
    """One request on one connection."""

    def __init__(self, index: int, body: dict[str, Any], endpoint: dict[str, Any], limits: dict[str, int]) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        content = http_request(endpoint, json.dumps(body).encode(), "close")
        self._recording = TimedRequest(index, 0, content, limits)
        self._transport: asyncio.Transport | None = None

    @property
    def last_byte(self) -> float:
        return self._recording.last_byte

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the interface of asyncio's, but are not subclasses.
        self._transport = cast(asyncio.Transport, transport)

    def send(self, start: float) -> None:
        assert self._transport is not None
        request = self._recording
        request.sent = time.perf_counter()
        self._transport.write(request.payload)
        emit({"event": "sent", "request": request.index, "at": (request.sent - start) * 1000})

    def data_received(self, data: bytes) -> None:
        now, request = time.perf_counter(), self._recording
        if self.ended.done():
            return
        fits = request.add(now, data)
        request.read()
        for ms, tokens, text, ids in request.take():
            chunk = {"ms": ms, "tokens": tokens, "text": text, "token_ids": ids}
            emit({"event": "chunk", "request": request.index, **chunk})
        if request.finished or not fits:
            self._report()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end("cut", str(exc or ""))

    def end(self, kind: str, detail: str = "") -> None:
        """Close the connection: nothing more will be read."""
        self._recording.end(kind, detail)
        self._report()

    def _report(self) -> None:
        if self.ended.done():
            return
        self.ended.set_result(None)
        if self._transport is not None:
            self._transport.abort()
        emit({"event": "end", "request": self._recording.index, **self._recording.outcome()})


async def run(plan: dict[str, Any], stop: asyncio.Event) -> None:
    """Send the plan's requests and report until each has ended, or until `stop` is set."""
    endpoints = plan["endpoints"]
    pairs = [
        (
            Request(index, item["body"], endpoints[item["endpoint"]], plan["limits"]),
            endpoints[item["endpoint"]],
        )
        for index, item in enumerate(plan["requests"])
    ]
    await asyncio.gather(*(_connect(request, endpoint) for request, endpoint in pairs))
    requests = [request for request, _ in pairs if not request.ended.done()]
    gc.disable()
    start = time.perf_counter()
    for request in requests:
        request.send(start)
    watcher = asyncio.create_task(_give_up_silent(requests, plan["idle_timeout_s"]))
    everything: asyncio.Future[Any] = asyncio.gather(*(request.ended for request in requests))
    stopped: asyncio.Future[Any] = asyncio.create_task(stop.wait())
    await asyncio.wait([everything, stopped], return_when=asyncio.FIRST_COMPLETED)
    for request in requests:
        request.end("stopped")
    for task in (stopped, watcher):
        task.cancel()


async def _connect(request: Request, endpoint: dict[str, Any]) -> None:
    try:
        await connect(request, endpoint)
    except (OSError, TimeoutError) as error:
        request.end("connect", str(error))


async def _give_up_silent(requests: list[Request], idle_timeout_s: float) -> None:
    """End every request whose stream has been silent for too long."""
    while True:
        await asyncio.sleep(min(idle_timeout_s / 4, 1.0))
        limit = time.perf_counter() - idle_timeout_s
        for request in requests:
            if request.last_byte < limit:
                request.end("silent", f"{idle_timeout_s:g}")
