"""The driver's events: JSON lines on standard output."""

from __future__ import annotations

import json
import queue
import sys
import threading
from typing import Any

import orjson


def emit(event: dict[str, Any]) -> None:
    try:
        line = orjson.dumps(event)
    except TypeError:
        # An engine's number beyond 64 bits.
        line = json.dumps(event).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


class Outbox:
    """Writes events in a thread of its own: a slow reader fills the pipe, and must not hold up the clock."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def put(self, event: dict[str, Any]) -> None:
        self._events.put(event)

    def close(self) -> None:
        """Returns when everything is written."""
        self._events.put(None)
        self._thread.join()

    def _write(self) -> None:
        while (event := self._events.get()) is not None:
            emit(event)
