"""Measured mode: a schedule's requests over connections that are kept, stamped now and parsed later."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import time
from collections import deque
from typing import Any

from playground.domain.spec.schedule import Pace, Planned, schedule

from .connection import Connection, connect, http_request
from .output import Outbox
from .timed_request import TimedRequest

# Ended requests are read a slice at a time: another request's stamp is late by a slice at worst. Every LISTEN_S we
# look whether nothing has arrived for QUIET_S; OVERDUE_S after its end, a request is read all the same: within a
# second it is to be in the history, and its bytes take memory.
SLICE_S = 0.0003
QUIET_S = 0.001
LISTEN_S = 0.01
OVERDUE_S = 0.5
# After so many refused connections in a row nothing more is sent: the endpoint is gone.
REFUSALS = 10
# How many of the connections that the server closed for idleness are opened again in advance.
SPARE = 8
RECENT_S = 1.0
# A stream that was quiet for so long is read: its end may have had a form that `Framing` does not know.
LOOK_S = 1.0


class ScheduledLoad:
    """The state of one measured plan: what is due next, which connections are free, what waits to be read."""

    def __init__(self, plan: dict[str, Any], outbox: Outbox) -> None:
        self.last_byte = 0.0
        self.held = 0
        self._limits: dict[str, int] = plan["limits"]
        self.most_held: int = self._limits["load_bytes"]
        self.ended = asyncio.Event()
        self._endpoint = plan["endpoint"]
        self._bodies = [json.dumps(body).encode() for body in plan["bodies"]]
        self._salt: str | None = plan["salt"]
        self._idle_timeout_s: float = plan["idle_timeout_s"]
        self._pace = Pace(**plan["pace"])
        self._schedule = schedule(self._pace, plan["seed"], len(self._bodies))
        self._next: Planned | None = next(self._schedule, None)
        self._outbox = outbox
        self._start = self._last_end = 0.0
        self._count = self._refused = self._opening = 0
        self._running: dict[TimedRequest, Connection] = {}
        self._free: list[Connection] = []
        self._again: deque[TimedRequest] = deque()
        # Those that wait for the endpoint's rate limit.
        self._paused: dict[TimedRequest, asyncio.TimerHandle] = {}
        self._waiting: deque[TimedRequest] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Open the connections, start the clock, and return when all has ended and been reported."""
        await asyncio.gather(*(self._open() for _ in range(self._pace.peak)))
        gc.collect()
        gc.freeze()
        gc.disable()
        cpu = time.process_time()
        self._start = self._last_end = time.perf_counter()
        self._pump()
        self._outbox.put({"event": "began"})
        watchers = [asyncio.create_task(self._watch()), asyncio.create_task(self._stop_when(stop))]
        await self.ended.wait()
        self._outbox.put({"event": "ended"})
        for task in watchers:
            task.cancel()
        if self._reading is not None:
            self._reading.cancel()
        while self._waiting:
            self._report(self._waiting.popleft())
        used = time.process_time() - cpu
        self._outbox.put({"event": "done", "client_cpu_s": used, "wall_s": self._last_end - self._start})

    # Sending

    def _pump(self) -> None:
        """Send everything that is due and may go. Called whenever one of the two may have changed."""
        # Sent a second time, a request needs a connection that can't be stale again.
        fresh = [connection for connection in self._free if not connection.carried] if self._again else []
        while self._again and fresh:
            self._send(self._again.popleft(), fresh.pop())
        while self._next is not None:
            planned, now_ms = self._next, (time.perf_counter() - self._start) * 1000
            if self._pace.duration_s is not None and now_ms >= self._pace.duration_s * 1000:
                self._next = None
                break
            under_way = len(self._running) + len(self._again) + len(self._paused)
            if under_way >= planned.limit or (planned.barrier and under_way):
                return
            if planned.at_ms > now_ms:
                self._pump_in((planned.at_ms - now_ms) / 1000)
                return
            if not self._free:
                self._make_free()
                return
            self._send(self._recording(planned), self._free[-1])
            # Where only time ends the load, the limit may come first.
            self._next = next(self._schedule, None) if self._count < self._limits["run_requests"] else None
        if not (self._running or self._again or self._paused):
            self.ended.set()

    def _make_free(self) -> None:
        """A request is due and no connection is free: open one, or give up if the endpoint is gone."""
        if self._refused < REFUSALS:
            if not self._opening:
                self._replace()
        elif not self._opening:
            self._next = None
            self._pump()

    def _pump_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._pump)

    def _recording(self, planned: Planned) -> TimedRequest:
        content = self._bodies[planned.prompt]
        if self._salt is not None:
            content = content[:-1] + f', "cache_salt": "{self._salt}-{self._count}"}}'.encode()
        payload = http_request(self._endpoint, content, "keep-alive")
        request = TimedRequest(self._count, planned.prompt, payload, self._limits)
        self._count += 1
        return request

    def _send(self, request: TimedRequest, connection: Connection) -> None:
        self._free.remove(connection)
        self._running[request] = connection
        if connection.is_open:
            connection.send(request)
        else:
            request.sent = time.perf_counter()
            request.end("connect", connection.refusal)
            self._over(request)
            self._replace()

    # Connections

    async def _open(self) -> None:
        """Open one more connection. If that fails, the request that gets the connection fails."""
        connection = Connection(self)
        try:
            await connect(connection, self._endpoint)
            self._refused = 0
        except (OSError, TimeoutError) as error:
            self._refused += 1
            connection.refusal = str(error)
        self._free.append(connection)

    def _replace(self) -> None:
        """Open another connection, unless all is sent or the endpoint is gone."""
        if self._next is None and not (self._again or self._paused):
            return
        if self._refused >= REFUSALS:
            for request in list(self._again):
                request.end("connect")
                self.abandon(request)
            return

        async def reopen() -> None:
            await self._open()
            self._opening -= 1
            self._pump()

        self._opening += 1
        task = asyncio.create_task(reopen())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def request_ended(self, connection: Connection, request: TimedRequest) -> None:
        if (seconds := request.pause_s(self._idle_timeout_s)) is not None:
            self._pause(request, seconds)
        else:
            self._over(request)
        if connection.is_open:
            self._free.append(connection)
        else:
            self._replace()
        self._pump()

    def _pause(self, request: TimedRequest, seconds: float) -> None:
        """Send it again once the endpoint will take it. It keeps its place in the load meanwhile."""
        self.held -= request.size
        del self._running[request]
        request.again(seconds)
        self._paused[request] = asyncio.get_running_loop().call_later(seconds, self._resume, request)

    def _resume(self, request: TimedRequest) -> None:
        del self._paused[request]
        self._again.append(request)
        self._replace()

    def connection_lost(self, connection: Connection, request: TimedRequest | None, reason: str) -> None:
        if request is None:
            if connection in self._free:
                self._free.remove(connection)
                # Replace one that was closed after an answer; of those closed for idleness, up to SPARE.
                if time.perf_counter() - connection.used < RECENT_S or len(self._free) < SPARE:
                    self._replace()
            return
        stale = connection.carried > 1 and not request.blocks and not request.retried
        if stale:
            # Closed while the request was on its way: the server never saw it.
            request.retried = True
            del self._running[request]
            self._again.append(request)
        else:
            request.end("cut", reason)
            self._over(request)
        self._replace()
        self._pump()

    # Ending and reading

    def _over(self, request: TimedRequest) -> None:
        del self._running[request]
        self._last_end = max(self._last_end, request.last_byte)
        self._waiting.append(request)
        if self._reading is None:
            self._read_in(LISTEN_S)

    def _read_some(self) -> None:
        """One slice of reading, if nothing streams just now or it can't wait."""
        self._reading = None
        if not self._waiting:
            return
        now, request = time.perf_counter(), self._waiting[0]
        due = now - self.last_byte > QUIET_S or now - request.last_byte > OVERDUE_S
        if due and request.read(until=now + SLICE_S):
            self._report(self._waiting.popleft())
        if self._waiting:
            self._read_in(QUIET_S if due else LISTEN_S)

    def make_room(self) -> bool:
        """Report all that has ended, now, although it delays stamps. True if what is held is within its limit."""
        while self._waiting:
            self._report(self._waiting.popleft())
        return self.held <= self.most_held

    def _read_in(self, seconds: float) -> None:
        self._reading = asyncio.get_running_loop().call_later(seconds, self._read_some)

    def _report(self, request: TimedRequest) -> None:
        request.read()
        self.held -= request.size
        for event in request.events(self._start):
            self._outbox.put(event)

    async def _watch(self) -> None:
        """End requests whose stream has been silent for too long, or has ended without our noticing."""
        while True:
            await asyncio.sleep(min(self._idle_timeout_s / 4, LOOK_S))
            now = time.perf_counter()
            for request in list(self._running):
                quiet = now - request.last_byte
                if quiet > self._idle_timeout_s:
                    request.end("silent", f"{self._idle_timeout_s:g}")
                    self.abandon(request)
                elif quiet > LOOK_S and request.read() and request.finished:
                    self.abandon(request)

    async def _stop_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._next = None
        for request, timer in self._paused.items():
            timer.cancel()
            self._again.append(request)
        self._paused.clear()
        for request in [*self._running, *self._again]:
            request.end("stopped")
            self.abandon(request)
        self.ended.set()

    def abandon(self, request: TimedRequest) -> None:
        """Close the request's connection: nothing more will be read."""
        if request in self._again:
            self._again.remove(request)
            self._waiting.append(request)
            return
        connection = self._running[request]
        connection.request = None
        connection.drop()
        self._over(request)
        self._replace()
        self._pump()


async def run(plan: dict[str, Any], stop: asyncio.Event) -> None:
    """Run the plan's schedule and report every request, then the time and CPU time used."""
    outbox = Outbox()
    try:
        await ScheduledLoad(plan, outbox).run(stop)
    finally:
        with contextlib.suppress(BrokenPipeError):
            outbox.close()
