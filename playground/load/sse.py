"""Server-sent events: parses the bytes of a body into the data of each event, and that as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson

from playground.domain.unicode import mended


class StreamError(Exception):
    """The stream can't be read on. `kind` is a message id's last part; `detail` is the server's own words."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


class EventParser:
    """Feed it a body's blocks; it gives the data of the events that have ended with them."""

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, block: bytes) -> Iterable[bytes]:
        whole = block.startswith(b"data: ") and block.endswith(b"\n\n") and block.find(b"\n") == len(block) - 2
        if whole and not (self._line or self._data):
            # One whole event in one block, as engines send it.
            return (block[6:-2],)
        *lines, self._line = (self._line + block).split(b"\n")
        return self._of_lines(lines)

    def end(self) -> Iterable[bytes]:
        """The body is complete: its last event may lack the empty line."""
        return self._of_lines([self._line, b""])

    def _of_lines(self, lines: Iterable[bytes]) -> list[bytes]:
        ended: list[bytes] = []
        for line in lines:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                self._data.append(text[5:].removeprefix(b" "))
            elif not text and self._data:
                ended.append(b"\n".join(self._data))
                self._data = []
        return ended


def payload(data: bytes) -> dict[str, Any] | None:
    """An event's JSON object; None for the `[DONE]` that ends a stream. Raises StreamError for anything else."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        if data.strip() == b"[DONE]":
            return None
        value = lenient_json(data)
    if not isinstance(value, dict):
        raise malformed(data)
    return value


def lenient_json(data: bytes) -> Any:
    """Parse what orjson refuses and engines send: half an emoji (which becomes U+FFFD), and NaN."""
    try:
        readable = json.dumps(json.loads(data), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise malformed(data) from error
    return json.loads(mended(readable))


def malformed(data: bytes) -> StreamError:
    return StreamError("malformed", data[:200].decode(errors="replace"))
