"""A vLLM-shaped server whose timing is known: an absolute schedule, and a record of how late it was itself.

usage: python -m benchmarks.paced_server [--port N] [--first MS] [--gap MS] [--per-chunk N]

Each answer's first token is due `--first` ms after its request has arrived, then a chunk of `--per-chunk` tokens
every `--gap` ms. A late chunk delays no other one. As with vLLM, the role-only chunk comes with the first token.
GET /stats gives what the server saw of all answers since the last time, and forgets them.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import re
import statistics
import time
from dataclasses import dataclass, field
from functools import cache
from typing import cast

import uvloop

from playground.load.connection import at_once

PROMPT_TOKENS = 32
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
# Shorter answers are a client's own probes and warm-ups: they are served, and not counted.
COUNTED_TOKENS = 64


@dataclass
class Answer:
    """One request under way: when each of its blocks is due, and when it was written."""

    connection: Connection
    arrived: float
    blocks: list[bytes]
    tokens: int
    per_chunk: int
    written: list[float] = field(default_factory=list)

    @property
    def ttft_ms(self) -> float:
        return (self.written[0] - self.arrived) * 1000

    @property
    def tpot_ms(self) -> float:
        after_first = self.tokens - min(self.per_chunk, self.tokens)
        return (self.written[-1] - self.written[0]) / after_first * 1000


class Pacer:
    """Writes every block when it is due. All answers share one queue, ordered by due time."""

    def __init__(self, first_ms: float, gap_ms: float, per_chunk: int) -> None:
        self.first_s, self.gap_s, self.per_chunk = first_ms / 1000, gap_ms / 1000, per_chunk
        self.finished: list[Answer] = []
        self.late_ms: list[float] = []
        self._due: list[tuple[float, int, Answer]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None

    def begin(self, answer: Answer) -> None:
        self._number += 1
        heapq.heappush(self._due, (answer.arrived + self.first_s, self._number, answer))
        if self._timer is None:
            self._wait()

    def _wait(self) -> None:
        """Timers have a resolution of a millisecond: the last one is waited for by polling."""
        loop = asyncio.get_running_loop()
        left = self._due[0][0] - time.perf_counter()
        self._timer = loop.call_later(left - 0.001, self._write) if left > 0.001 else loop.call_soon(self._write)

    def _write(self) -> None:
        self._timer = None
        while self._due and self._due[0][0] <= time.perf_counter():
            due, _, answer = heapq.heappop(self._due)
            if answer.connection.closed:
                continue
            answer.connection.write(answer.blocks[len(answer.written)])
            answer.written.append(time.perf_counter())
            self.late_ms.append((answer.written[-1] - due) * 1000)
            if len(answer.written) == len(answer.blocks):
                if answer.tokens >= COUNTED_TOKENS:
                    self.finished.append(answer)
            else:
                # Absolute: counted from the arrival, not from the block before.
                next_due = answer.arrived + self.first_s + len(answer.written) * self.gap_s
                self._number += 1
                heapq.heappush(self._due, (next_due, self._number, answer))
        if self._due:
            self._wait()

    def stats(self) -> dict[str, float | None]:
        answers, self.finished = self.finished, []
        late, self.late_ms = self.late_ms, []
        if not answers:
            return {"answers": 0}
        return {
            "answers": len(answers),
            "ttft_ms": statistics.fmean(answer.ttft_ms for answer in answers),
            "tpot_ms": statistics.fmean(answer.tpot_ms for answer in answers),
            "late_ms_mean": statistics.fmean(late),
            "late_ms_max": max(late),
        }


class Connection(asyncio.Protocol):
    """One client connection, kept for request after request."""

    def __init__(self, pacer: Pacer) -> None:
        self.closed = False
        self._pacer = pacer
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Written at once, so that the stamp is the moment when the bytes left.
        self.write = at_once(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def data_received(self, data: bytes) -> None:
        arrived = time.perf_counter()
        self._pending += data
        head, separator, content = self._pending.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not separator or len(content) < (int(length[1]) if length else 0):
            return
        self._pending = b""
        path = head.split(b" ", 2)[1].decode()
        if path.endswith("/completions"):
            self._answer(json.loads(content), arrived, chat="chat" in path)
        elif path == "/stats":
            self._whole(self._pacer.stats())
        else:
            self._whole({"object": "list", "data": [{"id": "paced", "object": "model", "max_model_len": 8192}]})

    def _answer(self, body: dict[str, object], arrived: float, chat: bool) -> None:
        tokens = int(str(body.get("max_completion_tokens") or body.get("max_tokens") or 16))
        usage = body.get("stream_options")
        running = isinstance(usage, dict) and bool(usage.get("continuous_usage_stats"))
        made = blocks(tokens, self._pacer.per_chunk, chat, bool(body.get("return_token_ids")), running)
        self._pacer.begin(Answer(self, arrived, made, tokens, self._pacer.per_chunk))

    def _whole(self, document: object) -> None:
        content = json.dumps(document).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        self.write(head.encode() + content)


@cache
def blocks(tokens: int, per_chunk: int, chat: bool, with_ids: bool, running: bool) -> list[bytes]:
    """What is written at each step of an answer, made before it is needed."""
    made: list[bytes] = []
    sent = 0
    while sent < tokens:
        count = min(per_chunk, tokens - sent)
        role = b""
        if chat and sent == 0:
            role = _event(_payload({"delta": {"role": "assistant", "content": ""}}, chat, 0 if running else None))
        ids = list(range(sent, sent + count))
        sent += count
        text = "".join(f" word{number}" for number in ids)
        choice: dict[str, object] = {"delta": {"content": text}} if chat else {"text": text}
        choice |= {"logprobs": None, "finish_reason": "length" if sent == tokens else None}
        if with_ids:
            choice["token_ids"] = ids
        made.append(role + _event(_payload(choice, chat, sent if running else None)))
    made[0] = HEAD + made[0]
    made[-1] += _event(_payload(None, chat, tokens)) + _block(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return made


def _payload(choice: dict[str, object] | None, chat: bool, so_far: int | None) -> dict[str, object]:
    kind = "chat.completion.chunk" if chat else "text_completion"
    made: dict[str, object] = {"id": "chatcmpl-8f2c6b0d9a7e4f51", "object": kind, "created": 1700000000}
    made |= {"model": "paced", "choices": [] if choice is None else [{"index": 0, **choice}]}
    if so_far is not None:
        total = PROMPT_TOKENS + so_far
        made["usage"] = {"prompt_tokens": PROMPT_TOKENS, "total_tokens": total, "completion_tokens": so_far}
    return made


def _event(payload: dict[str, object]) -> bytes:
    return _block(b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n")


def _block(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def serve(pacer: Pacer, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(pacer), "127.0.0.1", port, backlog=512
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--first", type=float, default=20.0, help="ms from a request to its first token")
    parser.add_argument("--gap", type=float, default=5.0, help="ms from chunk to chunk")
    parser.add_argument("--per-chunk", type=int, default=1, help="tokens in each chunk")
    given = parser.parse_args()
    uvloop.run(serve(Pacer(given.first, given.gap, given.per_chunk), given.port))
