"""Connections that are opened and then send no request, or one that never ends, or never read the answer.

uvicorn waits for them without a limit, until no file descriptor is left for anybody else.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .addresses import network

# Seconds in which a request's head, and its body, must have arrived. An upload takes a slow line minutes.
HEAD_S, BODY_S = 10.0, 300.0
# Seconds in which something of an answer must have been taken: until then all of it is held.
TAKEN_S = 30.0
# The longest head, in bytes. uvicorn keeps it whole, and the event loop is occupied with it.
HEAD_BYTES = 65_536
# Seconds for an answer under way when the server closes: an open page holds some open all the time.
CLOSE_S = 0.5
# Connections whose request is not complete; beyond that the oldest of them is closed.
MOST_WAITING = 256
# Connections altogether, and file descriptors that are left for everything else.
MOST, RESERVED = 4096, 512


def places() -> int:
    """Raise the limit of file descriptors as far as the system lets us, and return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + RESERVED if hard == resource.RLIM_INFINITY else min(hard, MOST + RESERVED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    room = MOST + RESERVED if soft == resource.RLIM_INFINITY else soft
    return max(64, min(MOST, room - RESERVED))


class Connection(HttpToolsProtocol):
    """One connection with limits: in time for a request, in number for one address and for all."""

    most: ClassVar[int] = MOST
    waiting: ClassVar[dict[Connection, None]] = {}
    by_address: ClassVar[Counter[str]] = Counter()

    _deadline: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None
    _in_head = True
    # Whether a head has begun, and its bytes so far.
    _head_begun = False
    _head_bytes = 0
    _address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer: Any = transport.get_extra_info("peername")
        self._address = network(str(peer[0])) if peer else ""
        self.by_address[self._address] += 1
        # One address gets half of the places at most.
        if len(self.connections) > self.most or self.by_address[self._address] > self.most // 2:
            transport.abort()
            return
        self._wait(in_head=True)
        if len(self.waiting) > MOST_WAITING:
            # Who opens many makes room, and nobody else.
            ((most, _),) = Counter(waiting._address for waiting in self.waiting).most_common(1)
            next(waiting for waiting in self.waiting if waiting._address == most).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done_waiting()
        self._all_taken()
        self.by_address[self._address] -= 1
        if not self.by_address[self._address]:
            del self.by_address[self._address]
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_begun = True

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_begun = False

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        self._head_bytes = self._head_bytes + len(data) if self._head_begun else 0
        if self._head_bytes > HEAD_BYTES:
            self.transport.abort()
            return
        # The last request's cycle stays until the head of the next one is complete.
        in_head = self._head_begun or self.cycle is None or self.cycle.response_complete
        if not in_head and not self.cycle.more_body:
            self._done_waiting()
        elif self not in self.waiting or in_head != self._in_head:
            self._wait(in_head)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all_taken()

    def _await_taking(self, before: int | None = None) -> None:
        """`before`: bytes that were left when it was last looked at."""
        left = self.transport.get_write_buffer_size()
        if left == before:
            self._give_up()
        else:
            self._taking = self.loop.call_later(TAKEN_S, self._await_taking, left)

    def _all_taken(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(CLOSE_S, self._give_up)

    def _wait(self, in_head: bool) -> None:
        self._done_waiting()
        self._in_head = in_head
        self.waiting[self] = None
        self._deadline = self.loop.call_later(HEAD_S if in_head else BODY_S, self._give_up)

    def _done_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self.transport.abort()
