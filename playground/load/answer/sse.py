"""Server-sent events: parses the bytes of a body into the data of each event, and that as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import inf
from typing import Any

import orjson

from playground.domain.unicode import mended

BOM = b"\xef\xbb\xbf"


class StreamError(Exception):
    """The stream can't be read on. `kind` is a message id's last part; `detail` is the server's own words."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


class EventParser:
    """Feed it a body's blocks; it gives the data of the events that have ended with them.

    Both raise StreamError for an event of more than `most` bytes.
    """

    def __init__(self, most: float = inf) -> None:
        self._most = most
        # The pieces of the line that has not ended; the lines of the event that has not. Bytes of each.
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        # The last block ended with a carriage return: a line feed that follows belongs to it.
        self._after_return = False
        self._is_error = False

    def feed(self, block: bytes) -> Iterable[bytes]:
        whole = block.startswith(b"data: ") and block.endswith(b"\n\n") and block.find(b"\n") == len(block) - 2
        if whole and not (self._line or self._data) and len(block) <= self._most:
            # One whole event in one block, as engines send it.
            return (block[6:-2],)
        if self._after_return:
            block = block.removeprefix(b"\n")
        self._after_return = block.endswith(b"\r")
        self._line.append(block)
        self._line_size += len(block)
        ended: list[bytes] = []
        if b"\n" in block or b"\r" in block:
            # Joined only now: a long line comes in thousands of blocks. Bytes have no other line ends.
            lines = b"".join(self._line).splitlines(keepends=True)
            rest = b"" if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
            self._line, self._line_size = [rest] if rest else [], len(rest)
            ended = self._of_lines(lines)
        self._check(self._line_size)
        return ended

    def end(self) -> Iterable[bytes]:
        """The body is complete: its last event may lack the empty line."""
        return self._of_lines([b"".join(self._line), b""])

    def _of_lines(self, lines: Iterable[bytes]) -> list[bytes]:
        ended: list[bytes] = []
        for line in lines:
            text = line.rstrip(b"\r\n").removeprefix(BOM)
            if text.startswith((b"data:", b"error:")):
                name, _, value = text.partition(b":")
                self._is_error = self._is_error or name == b"error"
                self._data.append(value.removeprefix(b" "))
                self._data_size += len(text)
                self._check(self._data_size)
            elif text.startswith(b"event:"):
                self._is_error = text[6:].strip() == b"error"
            elif not text and self._data:
                data = b"\n".join(self._data)
                ended.append(_as_error(data) if self._is_error else data)
                self._data, self._data_size, self._is_error = [], 0, False
        return ended

    def _check(self, size: int) -> None:
        if size > self._most:
            raise StreamError("event_too_large", f"{self._most:,}")


def _as_error(data: bytes) -> bytes:
    """The data of an event that is called an error, which may be plain text, as servers write most errors."""
    try:
        return orjson.dumps({"error": orjson.loads(data)})
    except orjson.JSONDecodeError:
        return orjson.dumps({"error": data.decode(errors="replace")})


def payload(data: bytes) -> dict[str, Any] | None:
    """An event's JSON object, empty for an event that only keeps the connection; None for the `[DONE]` that ends a
    stream. Raises StreamError for anything else."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        if not data.strip():
            return {}
        if _is_done(data):
            return None
        value = lenient_json(data)
    if value is None:
        return {}
    if isinstance(value, str) and _is_done(value.encode()):
        return None
    if not isinstance(value, dict):
        raise malformed(data)
    return value


def _is_done(data: bytes) -> bool:
    """Also as some servers write it: `[done]`, `"[DONE]"`, `DONE`."""
    return data.strip(b' \t\r\n[]"').lower() == b"done"


def lenient_json(data: bytes) -> Any:
    """Parse what orjson refuses and engines send: half an emoji (which becomes U+FFFD), and NaN."""
    try:
        readable = json.dumps(json.loads(data), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise malformed(data) from error
    return json.loads(mended(readable))


def malformed(data: bytes) -> StreamError:
    return StreamError("malformed", data[:200].decode(errors="replace"))
