"""Detects cheaply where an HTTP response ends while its bytes arrive; they are parsed later."""

from __future__ import annotations

import re

HEAD_END = b"\r\n\r\n"
# The last chunk's line end, the empty chunk, and no trailers. An event stream has no line that reads "0".
TERMINATOR = b"\r\n0\r\n\r\n"
# A longer head is none that we know.
HEAD_BYTES = 65_536
LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,18})", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)
CLOSE = re.compile(rb"^HTTP/1\.0|\r\nconnection:[^\r]*close", re.IGNORECASE)


Blocks = list[tuple[float, bytes]]


def may_end(block: bytes) -> bool:
    """Whether a chunked response can end with this block: a short one may be a piece of the terminator."""
    return block.endswith(TERMINATOR) or len(block) < len(TERMINATOR)


class Framing:
    """One response: `ended` takes each block and says whether the response has ended with it.

    It may miss an end (trailers), never see one too early: a response without a known end lasts until the
    connection closes, and its reader decides.
    """

    def __init__(self) -> None:
        self.keep_alive = True
        self._head: bytes | None = b""
        # If true, `ended` need only see the blocks for which `may_end` is true.
        self.chunked = False
        self._missing: int | None = None

    def ended(self, blocks: Blocks) -> bool:
        """`blocks` are the response's blocks so far; the last one is new."""
        block = blocks[-1][1]
        if self._head is not None:
            return self._on_head(block)
        if self.chunked:
            if len(block) < len(TERMINATOR):
                block = b"".join(data for _, data in blocks[-len(TERMINATOR) :])
            return block.endswith(TERMINATOR)
        if self._missing is not None:
            self._missing -= len(block)
            return self._missing <= 0
        return False

    def _on_head(self, block: bytes) -> bool:
        assert self._head is not None
        self._head += block
        end = self._head.find(HEAD_END)
        if end < 0:
            if len(self._head) > HEAD_BYTES:
                self._head, self.keep_alive = None, False
            return False
        # The head's own line end may be the one before the empty chunk.
        head, body = self._head[: end + 2], self._head[end + 2 :]
        self._head = None
        self.keep_alive = not CLOSE.search(head)
        if CHUNKED.search(head):
            self.chunked = True
            return body.endswith(TERMINATOR)
        if length := LENGTH.search(head):
            self._missing = int(length[1]) - (len(body) - 2)
            return self._missing <= 0
        self.keep_alive = False
        return False
