"""The load driver: reads a plan, sends its requests, writes events as JSON lines on standard output.

    python -m playground.load.driver < plan

The plan is one JSON line with a `mode` and `limits`: bytes of one event of an answer (`event_bytes`), of an answer
(`response_bytes`) and of all that are not reported yet (`load_bytes`), tokens of an answer (`output_tokens`); a
larger answer is ended. A measurement that only time would end also ends after so many requests (`run_requests`).
An endpoint has `uds`, or `host`, `port` and `tls`; `path`; `headers`. All connections are opened before anything
is sent. Times in events are milliseconds.

A race has `endpoints`, `requests` (each an `endpoint` index and a `body`) and `idle_timeout_s`. All requests leave
together. Events: `sent` (`at`: since the first send), `chunk` (`ms`: since this request's send), `end` (once a
request, with its `problem` if it has one).

A measurement has one `endpoint`, `bodies` (one a prompt), `salt` (for `cache_salt`, made unique for each request),
`pace`, `seed` and `idle_timeout_s`. Events: `began` and `ended` (the first send, the last byte); `request` (one
a request, some time after it has ended: `at`, and `chunks` as lists of ms since its send, tokens, text, ids),
before it `part` for the first chunks of a long answer; at the end `done` (`client_cpu_s`, `wall_s`).

SIGTERM, or the end of standard input, closes the connections: the engine then aborts the requests, what arrived is
reported, and the driver exits.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from typing import Any

import uvloop

from playground.guard import die_with_parent

from . import measured, race


async def run(plan: dict[str, Any]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    watcher = asyncio.create_task(_stop_at_end_of_input(stop))
    if plan["mode"] == "race":
        await race.run(plan, stop)
    else:
        await measured.run(plan, stop)
    watcher.cancel()


async def _stop_at_end_of_input(stop: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    stop.set()


def _allow_many_connections() -> None:
    """Raise the limit of open files to the user's maximum: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    # The end of standard input says the same, but only a driver that is not busy reads it.
    die_with_parent(signal.SIGKILL, os.getppid())
    plan = json.loads(sys.stdin.readline())
    _allow_many_connections()
    uvloop.run(run(plan))


if __name__ == "__main__":
    main()
