"""Opening connections, for both modes of the driver; and measured mode's connection, which only stamps."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from .framing import Framing, may_end
from .timed_request import TimedRequest, taken

CONNECT_TIMEOUT_S = 10


def http_request(endpoint: dict[str, Any], content: bytes, connection: str) -> bytes:
    """A whole POST request. `connection`: close or keep-alive."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        # A proxy that compresses collects a block first, and tokens come late.
        "Accept-Encoding": "identity",
        "Content-Length": str(len(content)),
        "Connection": connection,
        **endpoint["headers"],
    }
    lines = [f"POST {endpoint['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def connect(protocol: asyncio.Protocol, endpoint: dict[str, Any]) -> None:
    """Open a connection for `protocol`. Raises OSError or TimeoutError."""
    loop = asyncio.get_running_loop()
    context = ssl.create_default_context() if endpoint["tls"] else None
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        if endpoint["uds"]:
            await loop.create_unix_connection(lambda: protocol, endpoint["uds"])
        else:
            await loop.create_connection(lambda: protocol, endpoint["host"], endpoint["port"], ssl=context)


class Owner(Protocol):
    """Learns how a connection's requests end. `last_byte` is when anything last arrived on any connection; `held`
    is how many bytes of answers wait to be reported, and `most_held` how many may."""

    last_byte: float
    held: int
    most_held: int

    def make_room(self) -> bool: ...

    def abandon(self, request: TimedRequest) -> None: ...

    def request_ended(self, connection: Connection, request: TimedRequest) -> None: ...

    def connection_lost(self, connection: Connection, request: TimedRequest | None, reason: str) -> None: ...


class Connection(asyncio.Protocol):
    """Sends one request after another. What arrives is stamped and kept; only its end is looked for."""

    def __init__(self, owner: Owner) -> None:
        self.request: TimedRequest | None = None
        # How many requests it has carried: an old one may have been closed by the server meanwhile.
        self.carried = 0
        # When it last carried the end of an answer.
        self.used = 0.0
        self.is_open = False
        # Why it could not be opened.
        self.refusal = ""
        self._owner = owner
        self._framing = Framing()
        self._transport: asyncio.Transport | None = None
        self._write: Callable[[bytes], None] = lambda _: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the interface of asyncio's, but are not subclasses.
        self._transport = cast(asyncio.Transport, transport)
        self._write = self._transport.write
        if transport.get_extra_info("ssl_object") is None:
            self._write = at_once(self._transport)
        self.is_open = True

    def send(self, request: TimedRequest) -> None:
        self.carried += 1
        self.request = request
        self._framing = Framing()
        request.sent = time.perf_counter()
        self._write(request.payload)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        request = self.request
        if request is None:
            return
        fits = request.add(now, data)
        owner = self._owner
        owner.last_byte = now
        owner.held += taken(data)
        if owner.held > owner.most_held and not owner.make_room():
            request.end("load_too_large", f"{owner.most_held:,}")
            fits = False
        if not fits:
            owner.abandon(request)
            return
        # This runs thousands of times a second: a block that can't be the last is not examined further.
        if self._framing.chunked and not may_end(data):
            return
        if self._framing.ended(request.blocks):
            self.request = None
            self.used = now
            if not self._framing.keep_alive:
                self.drop()
            self._owner.request_ended(self, request)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        request, self.request = self.request, None
        self._owner.connection_lost(self, request, str(exc or ""))

    def drop(self) -> None:
        """Close it at once: the engine then aborts the request."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()


def at_once(transport: asyncio.Transport) -> Callable[[bytes], None]:
    """A write that leaves now.

    uvloop's own only queues until the loop's next turn: of a hundred requests sent together, the first would be
    stamped as sent a millisecond or two before it left.
    """
    descriptor = transport.get_extra_info("socket").fileno()

    def write(payload: bytes) -> None:
        written = 0
        # A full buffer or a closed connection: the transport deals with it.
        with contextlib.suppress(OSError):
            written = os.write(descriptor, payload)
        if written < len(payload):
            transport.write(payload[written:])

    return write
