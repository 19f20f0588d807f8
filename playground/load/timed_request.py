"""One request: its bytes with their arrival times, and what they mean."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from .answer.sse import StreamError
from .answer.stream import Delta, StreamReader
from .rate_limit import pause_of

# How many blocks are read between two looks at the clock: about a tenth of a millisecond's work.
AT_ONCE = 32
# Of an event's deltas: characters and token ids, and about what the numbers of each delta take.
PART_SIZE = 500_000
DELTA_SIZE = 40
# The head of an answer is in the first of its blocks.
HEAD_BLOCKS = 4
# What a block takes beside its bytes: its time, and the objects around both.
BLOCK_SIZE = 128


def taken(block: bytes) -> int:
    """What a block takes in memory, in bytes: an answer may come one byte at a time."""
    return len(block) + BLOCK_SIZE


class TimedRequest:
    """`blocks` grows while the request runs. A race reads them as they come; measured mode once the request has
    ended, a slice at a time while others run."""

    def __init__(self, index: int, prompt: int, payload: bytes, limits: Mapping[str, int]) -> None:
        self.index = index
        self.prompt = prompt
        self.payload = payload
        self.sent = 0.0
        self.blocks: list[tuple[float, bytes]] = []
        # What all blocks take, also those that were released.
        self.size = 0
        self.retried = False
        # How often it was refused for the endpoint's rate limit and waited, and for how long.
        self.limited = 0
        self._waited_s = 0.0
        self._limits = limits
        # Why it ended early.
        self._early: tuple[str, str] | None = None
        # The error in its bytes.
        self._fault: tuple[str, str] | None = None
        self._most = limits["response_bytes"]
        self._reader = self._new_reader()
        self._read = 0

    def _new_reader(self) -> StreamReader:
        limits = self._limits
        return StreamReader(limits["event_bytes"], limits["output_tokens"], limits["response_bytes"])

    def pause_s(self, most_s: float) -> float | None:
        """How long to wait before it is sent again, if the answer is a refusal for a rate limit: as the endpoint
        says, else twice as long each time. None for another answer, or once it would have waited for more than
        `most_s` in all."""
        seconds = pause_of(b"".join(block for _, block in self.blocks[:HEAD_BLOCKS]), self.limited)
        return None if seconds is None or self._waited_s + seconds > most_s else seconds

    def again(self, seconds: float) -> None:
        """Forget the refusal: it will be sent again after so many seconds."""
        self.limited += 1
        self._waited_s += seconds
        self._reader.release()
        self.blocks, self.size, self._read, self._reader = [], 0, 0, self._new_reader()

    @property
    def last_byte(self) -> float:
        """When its last bytes arrived; before the first, when it was sent."""
        return self.blocks[-1][0] if self.blocks else self.sent

    def add(self, at: float, block: bytes) -> bool:
        """Take a block that has arrived. False, and why it ends here, if the answer has become too large."""
        self.blocks.append((at, block))
        self.size += taken(block)
        if self.size > self._most:
            self.end("answer_too_large", f"{self._most:,}")
        return self.size <= self._most

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

    def events(self, start: float) -> Iterator[dict[str, Any]]:
        """The whole request as events, once it has ended and been read: a long answer's first parts come alone."""
        *parts, last = _parts(self.take())
        for part in parts:
            yield {"event": "part", "request": self.index, "chunks": part}
        yield {
            "event": "request",
            "request": self.index,
            "prompt": self.prompt,
            "at": (self.sent - start) * 1000,
            "chunks": last,
            "limited": self.limited,
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


def _parts(deltas: list[Delta]) -> Iterator[list[Delta]]:
    """The deltas in lists, each short enough for an event; at least one list."""
    part, size = list[Delta](), 0
    for delta in deltas:
        weight = sum(map(len, filter(None, delta[2:]))) + DELTA_SIZE
        if part and size + weight > PART_SIZE:
            yield part
            part, size = [], 0
        part.append(delta)
        size += weight
    yield part
