"""One request: its bytes with their arrival times, and what they mean."""

from __future__ import annotations

import time
from typing import Any

from .sse import StreamError
from .stream import Delta, StreamReader

# How many blocks are read between two looks at the clock: about a tenth of a millisecond's work.
AT_ONCE = 32


class TimedRequest:
    """`blocks` grows while the request runs. A race reads them as they come; measured mode once the request has
    ended, a slice at a time while others run."""

    def __init__(self, index: int, prompt: int, payload: bytes) -> None:
        self.index = index
        self.prompt = prompt
        self.payload = payload
        self.sent = 0.0
        self.blocks: list[tuple[float, bytes]] = []
        self.retried = False
        # Why it ended early.
        self._early: tuple[str, str] | None = None
        # The error in its bytes.
        self._fault: tuple[str, str] | None = None
        self._reader = StreamReader()
        self._read = 0

    @property
    def last_byte(self) -> float:
        """When its last bytes arrived; before the first, when it was sent."""
        return self.blocks[-1][0] if self.blocks else self.sent

    def end(self, kind: str, detail: str = "") -> None:
        """Record why it ended early. A whole answer, or an error in its bytes, takes precedence over that."""
        self._early = (kind, detail)

    def read(self, until: float | None = None) -> bool:
        """Read blocks, until a moment of `time.perf_counter` if given. True: everything that came is read."""
        blocks, sent, feed = self.blocks, self.sent, self._reader.feed
        while self._read < len(blocks):
            batch = blocks[self._read : self._read + AT_ONCE]
            self._read += len(batch)
            try:
                for at, block in batch:
                    feed((at - sent) * 1000, block)
            except StreamError as problem:
                self._fault = (problem.kind, problem.detail)
                self._read = len(blocks)
            if until is not None and time.perf_counter() > until:
                break
        return self._read == len(blocks)

    @property
    def finished(self) -> bool:
        """Whether what was read so far is the whole answer, or can't become one."""
        return self._reader.finished or self._fault is not None

    def _problem(self) -> tuple[str, str] | None:
        if self._fault is not None or self._reader.finished:
            return self._fault
        try:
            self._reader.eof()
        except StreamError as problem:
            # An HTTP error whose text was cut short is still that error.
            return (problem.kind, problem.detail) if problem.kind == "http" else self._early or (problem.kind, "")
        return None

    def take(self) -> list[Delta]:
        """The deltas that were read and not taken yet."""
        return self._reader.take()

    def event(self, start: float) -> dict[str, Any]:
        """The whole request as an event, once it has ended and been read."""
        return {
            "event": "request",
            "request": self.index,
            "prompt": self.prompt,
            "at": (self.sent - start) * 1000,
            "chunks": self.take(),
            **self.outcome(),
        }

    def outcome(self) -> dict[str, Any]:
        """How it ended. Releases bytes and reader."""
        reader = self._reader
        problem = self._problem()
        reader.release()
        self.blocks = []
        return {
            "finish_reason": reader.finish_reason,
            "prompt_tokens": reader.prompt_tokens,
            "output_tokens": reader.output_tokens,
            "speculation": reader.speculation,
            "problem": None if problem is None else {"kind": problem[0], "detail": problem[1]},
        }
