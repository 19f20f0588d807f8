"""The driver's events: JSON lines on standard output."""

from __future__ import annotations

import json
import queue
import sys
import threading
from typing import Any

import orjson

from playground.processes import LINE_LIMIT

CONTENT: dict[str, Any] = {"text": "", "token_ids": None, "chunks": [], "speculation": None}


def emit(event: dict[str, Any]) -> None:
    """Write the event; without its content if the line would be too long for its reader."""
    line = _encoded(event)
    if len(line) >= LINE_LIMIT:
        less = {key: CONTENT.get(key, value) for key, value in event.items()}
        if "problem" in event:
            less["problem"] = {"kind": "answer_too_large", "detail": f"{LINE_LIMIT:,}"}
        line = _encoded(less)
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _encoded(event: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(event)
    except TypeError:
        # An engine's number beyond 64 bits.
        return json.dumps(event).encode()


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
