"""Race: one request to each endpoint, all at once, parsed as it goes."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from typing import Any, cast

from .connection import connect, http_request
from .output import emit
from .sse import StreamError
from .stream import StreamReader


class Request(asyncio.Protocol):
    """One request on one connection."""

    def __init__(self, index: int, body: dict[str, Any], endpoint: dict[str, Any]) -> None:
        self.index = index
        self.ended = asyncio.get_running_loop().create_future()
        self._payload = http_request(endpoint, json.dumps(body).encode(), "close")
        self._reader = StreamReader()
        self._transport: asyncio.Transport | None = None
        self._sent = 0.0
        self.last_byte = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes, only alike.
        self._transport = cast(asyncio.Transport, transport)

    def send(self, start: float) -> None:
        assert self._transport is not None
        self._sent = self.last_byte = time.perf_counter()
        self._transport.write(self._payload)
        emit({"event": "sent", "request": self.index, "at": (self._sent - start) * 1000})

    def data_received(self, data: bytes) -> None:
        self.last_byte = now = time.perf_counter()
        if self.ended.done():
            return
        fault: StreamError | None = None
        try:
            self._reader.feed((now - self._sent) * 1000, data)
        except StreamError as problem:
            fault = problem
        for ms, tokens, text, ids in self._reader.take():
            chunk = {"ms": ms, "tokens": tokens, "text": text, "token_ids": ids}
            emit({"event": "chunk", "request": self.index, **chunk})
        if fault is not None:
            self.end(fault.kind, fault.detail)
        elif self._reader.finished:
            self.end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            self._reader.eof()
        except StreamError as problem:
            self.end(problem.kind, problem.detail or str(exc or ""))

    def end(self, kind: str | None, detail: str = "") -> None:
        """Report the request's end, once, and close its connection."""
        if self.ended.done():
            return
        self.ended.set_result(None)
        if self._transport is not None:
            self._transport.abort()
        reader = self._reader
        emit(
            {
                "event": "end",
                "request": self.index,
                "finish_reason": reader.finish_reason,
                "prompt_tokens": reader.prompt_tokens,
                "output_tokens": reader.output_tokens,
                "speculation": reader.speculation,
                "problem": None if kind is None else {"kind": kind, "detail": detail},
            }
        )


async def run(plan: dict[str, Any], stop: asyncio.Event) -> None:
    """Send the plan's requests and report until each has ended, or until told to stop."""
    endpoints = plan["endpoints"]
    pairs = [
        (Request(index, item["body"], endpoints[item["endpoint"]]), endpoints[item["endpoint"]])
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
