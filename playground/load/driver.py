"""The load driver: reads a plan, sends its requests, writes events as JSON lines on standard output.

    python -m playground.load.driver < plan

The plan is one JSON line: `endpoints` (each `uds`, or `host` and `port`, with `path` and `headers`), `requests`
(each an `endpoint` index and a `body`), `idle_timeout_s`. All connections are opened before anything is sent; then
all requests leave together.

Events, times in milliseconds: `sent` (`at`: since the first send), `chunk` (`ms`: since this request's send),
`end` (once a request, with its `problem` if it has one). SIGTERM, or the end of standard input, closes the
connections: the engine then aborts the requests, what arrived is reported, and the driver exits.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
import time
from typing import Any, cast

import uvloop

from .stream import StreamProblem, StreamReader

CONNECT_TIMEOUT_S = 10


class Request(asyncio.Protocol):
    """One request on one connection."""

    def __init__(self, index: int, body: dict[str, Any], endpoint: dict[str, Any]) -> None:
        self.index = index
        self.ended = asyncio.get_running_loop().create_future()
        self._payload = _http_request(endpoint, body)
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
        _emit({"event": "sent", "request": self.index, "at": (self._sent - start) * 1000})

    def data_received(self, data: bytes) -> None:
        self.last_byte = now = time.perf_counter()
        if self.ended.done():
            return
        problem: StreamProblem | None = None
        try:
            self._reader.feed((now - self._sent) * 1000, data)
        except StreamProblem as found:
            problem = found
        for delta in self._reader.deltas:
            _emit(
                {
                    "event": "chunk",
                    "request": self.index,
                    "ms": delta.at,
                    "tokens": delta.tokens,
                    "text": delta.text,
                    "token_ids": delta.token_ids,
                }
            )
        if problem is not None:
            self.end(problem.kind, problem.detail)
        elif self._reader.finished:
            self.end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            self._reader.eof()
        except StreamProblem as problem:
            self.end(problem.kind, problem.detail or str(exc or ""))

    def end(self, kind: str | None, detail: str = "") -> None:
        """Report the request's end, once, and close its connection."""
        if self.ended.done():
            return
        self.ended.set_result(None)
        if self._transport is not None:
            self._transport.abort()
        reader = self._reader
        _emit(
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


def _emit(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _http_request(endpoint: dict[str, Any], body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    headers = {
        "Host": endpoint.get("host") or "localhost",
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Content-Length": str(len(content)),
        "Connection": "close",
        **endpoint.get("headers", {}),
    }
    lines = [f"POST {endpoint['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def _connect(request: Request, endpoint: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            if endpoint.get("uds"):
                await loop.create_unix_connection(lambda: request, endpoint["uds"])
            else:
                await loop.create_connection(lambda: request, endpoint["host"], endpoint["port"])
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


async def _stop_at_end_of_input(stop: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    stop.set()


async def run(plan: dict[str, Any]) -> None:
    """Send the plan's requests and report until each has ended, or until told to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
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
    watchers = [
        asyncio.create_task(_stop_at_end_of_input(stop)),
        asyncio.create_task(_give_up_silent(requests, plan["idle_timeout_s"])),
    ]
    everything: asyncio.Future[Any] = asyncio.gather(*(request.ended for request in requests))
    stopped: asyncio.Future[Any] = asyncio.create_task(stop.wait())
    await asyncio.wait([everything, stopped], return_when=asyncio.FIRST_COMPLETED)
    for request in requests:
        request.end("stopped")
    for task in (stopped, *watchers):
        task.cancel()


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    uvloop.run(run(plan))


if __name__ == "__main__":
    main()
