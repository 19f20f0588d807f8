"""The body of a response that is not an error: decompressed, and taken apart into the JSON texts of its events.

It should be server-sent events. Some servers send JSON lines instead, and some ignore `stream` and send one JSON
document.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from .compression import decoder
from .sse import BOM, EventParser, StreamError

# Of the body so much is kept for the case that it turns out to be no stream.
BEGINNING = 8192


class Body:
    """Feed it blocks as they arrive; it gives the data of the events that have ended with them.

    Both raise StreamError for an event of more than `event_bytes`, and for what can't be decompressed or has more
    than `most` bytes afterwards.
    """

    def __init__(self, event_bytes: float, most: int, encoding: str = "") -> None:
        self.beginning = b""
        # Whether the body is one JSON document, or one a line.
        self.is_json = False
        self._event_bytes = event_bytes
        self._decoder = decoder(encoding, most)
        self._events = EventParser(event_bytes)
        self._sniffed = False
        self._lines: list[bytes] = []
        self._size = 0
        # The first line is no whole JSON: the document has several.
        self._one_document = False

    def feed(self, block: bytes) -> Iterable[bytes]:
        block = self.decoded(block)
        if len(self.beginning) < BEGINNING:
            self.beginning += block[:BEGINNING]
            if not self._sniffed:
                text = self.beginning.removeprefix(BOM).lstrip()
                self._sniffed = bool(text) and not BOM.startswith(text)
                self.is_json = text[:1] in (b"{", b"[") and self._sniffed
        return self._of_json(block) if self.is_json else self._events.feed(block)

    def decoded(self, block: bytes) -> bytes:
        """The block, decompressed."""
        return block if self._decoder is None else self._decoder(block)

    def end(self) -> Iterable[bytes]:
        """The body is complete: its last event may lack what ends it."""
        if not self.is_json:
            return self._events.end()
        rest, self._lines = b"".join(self._lines).removeprefix(BOM).strip(), []
        return [rest] if rest else []

    def _of_json(self, block: bytes) -> Iterable[bytes]:
        """JSON lines as they end; a document over several lines comes with the end."""
        self._lines.append(block)
        self._size += len(block)
        if self._size > self._event_bytes:
            raise StreamError("event_too_large", f"{self._event_bytes:,}")
        if self._one_document or b"\n" not in block:
            return ()
        *ended, rest = b"".join(self._lines).removeprefix(BOM).split(b"\n")
        lines = [line for line in map(bytes.strip, ended) if line]
        if lines and not _is_json(lines[0]):
            self._one_document = True
            return ()
        self._lines, self._size = [rest], len(rest)
        return lines


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
