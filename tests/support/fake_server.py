"""A fake OpenAI-compatible server on a real socket. It does what a real engine won't do on demand.

In a test, with a script that writes the answer's bytes itself:

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("Hello", [1]))
        reply.cut()

    async with FakeServer(script) as server:
        ...server.endpoint...

As a process, vLLM-shaped, at a steady rate:

    python tests/support/fake_server.py --port 8001 --rate 200 --tokens 2000
    python tests/support/fake_server.py --uds /tmp/a.sock --rate 200 --tokens 2000 --per-chunk 4

Each of its tokens reads `SEQUENCE@MILLISECONDS ` (the wall clock when it was written), so that a page's lag can be
read from what the page shows. Other arguments, such as an engine's own, are ignored: it can stand in for vLLM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playground.load.endpoint import Endpoint

PROMPT_TOKENS = 7
MODEL = "playground"
LONGEST = 8192
REFUSAL = (
    "ValueError: User-specified max_model_len ({}) is greater than the derived max_model_len "
    f"(max_position_embeddings={LONGEST} or model_max_length=None in model's config.json)."
)


def payload(
    delta: dict[str, Any] | None = None,
    *,
    ids: list[int] | None = None,
    finish: str | None = None,
    completion_tokens: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One chat.completion.chunk; without a delta it has no choices, like vLLM's final usage chunk."""
    choice: dict[str, Any] = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    if ids is not None:
        choice["token_ids"] = ids
    made = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    made["choices"] = [] if delta is None else [choice]
    if completion_tokens is not None:
        total = PROMPT_TOKENS + completion_tokens
        usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": completion_tokens, "total_tokens": total}
        made["usage"] = usage
    return made | more


def role() -> dict[str, Any]:
    return payload({"role": "assistant", "content": ""})


def token(text: str, ids: list[int] | None = None, **more: Any) -> dict[str, Any]:
    return payload({"content": text}, ids=ids, **more)


@dataclass
class Reply:
    """One request, and the answer that a script writes. `closed` is set when the client has gone."""

    body: dict[str, Any]
    writer: asyncio.StreamWriter
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def begin(self, status: str = "200 OK", content_type: str = "text/event-stream; charset=utf-8") -> None:
        headers = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        await self.raw(headers.encode())

    async def block(self, data: bytes) -> None:
        """One block of HTTP's chunked encoding."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, content: dict[str, Any] | str) -> None:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        await self.block(f"data: {text}\n\n".encode())

    async def done(self) -> None:
        await self.event("[DONE]")
        await self.raw(b"0\r\n\r\n")

    async def whole(self, status: str, content: str, content_type: str = "application/json") -> None:
        """A whole response that streams nothing."""
        data = content.encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(data)}\r\n\r\n"
        await self.raw(head.encode() + data)

    def cut(self) -> None:
        self.writer.close()


Script = Callable[[Reply], Awaitable[None]]


@dataclass
class Steady:
    """A script: `tokens` tokens at `rate` a second, `per_chunk` in each chunk after the first (speculation)."""

    rate: float = 200
    tokens: int = 2000
    per_chunk: int = 1
    running: int = 0
    generated: int = 0
    drafts: int = 0

    async def __call__(self, reply: Reply) -> None:
        self.running += 1
        try:
            # vLLM's own client calls it max_completion_tokens.
            limits = [reply.body.get(name) for name in ("max_tokens", "max_completion_tokens")]
            await self._stream(reply, min([self.tokens, *(limit for limit in limits if limit)]))
        finally:
            self.running -= 1

    async def _stream(self, reply: Reply, total: int) -> None:
        await reply.begin()
        start, sent, steps = time.perf_counter(), 0, 0
        while sent < total and not reply.closed.is_set():
            # An absolute schedule: one late chunk delays no other.
            await asyncio.sleep(max(0.0, start + (sent + 1) / self.rate - time.perf_counter()))
            if sent == 0:
                # vLLM names the role when the first token is there, just before it.
                await reply.event(role() | {"usage": payload(completion_tokens=0)["usage"]})
            count = min(1 if sent == 0 else self.per_chunk, total - sent)
            now = int(time.time() * 1000)
            text = "".join(f"{number}@{now} " for number in range(sent, sent + count))
            ids = list(range(sent, sent + count))
            sent += count
            self.generated += count
            if count > 1:
                steps += 1
                self.drafts += 1
            finish = "length" if sent == total else None
            await reply.event(token(text, ids, completion_tokens=sent, finish=finish))
        metrics = {}
        if self.per_chunk > 1:
            accepted = [self.per_chunk - 1] * steps
            record = {"num_spec_steps": steps, "per_step_accepted": accepted, "per_step_drafted": accepted}
            metrics = {"metrics": {"speculative_decoding": record}}
        await reply.event(payload(completion_tokens=sent, **metrics))
        await reply.done()

    def page(self) -> str:
        """What /metrics says, as vLLM says it."""
        labels = '{engine="0",model_name="playground"}'
        samples = {
            "vllm:num_requests_running": ("gauge", self.running),
            "vllm:num_requests_waiting": ("gauge", 0),
            "vllm:kv_cache_usage_perc": ("gauge", 0.01 * self.running),
            "vllm:generation_tokens_total": ("counter", self.generated),
            "vllm:num_preemptions_total": ("counter", 0),
        }
        drafted = self.per_chunk - 1
        if drafted:
            samples |= {
                "vllm:spec_decode_num_drafts_total": ("counter", self.drafts),
                "vllm:spec_decode_num_draft_tokens_total": ("counter", self.drafts * drafted),
                "vllm:spec_decode_num_accepted_tokens_total": ("counter", self.drafts * drafted),
            }
        lines = []
        for name, (kind, value) in samples.items():
            lines += [f"# TYPE {name.removesuffix('_total')} {kind}", f"{name}{labels} {float(value)}"]
        name = "vllm:spec_decode_num_accepted_tokens_per_pos"
        lines += [f"# TYPE {name} counter"] if drafted else []
        for position in range(drafted):
            own = labels[:-1] + f',position="{position}"}}'
            lines.append(f"{name}_total{own} {float(self.drafts)}")
        return "\n".join(lines) + "\n"


class FakeServer:
    """Serves chats and completions with a script, and /health, /metrics and /v1/models. An async context manager.

    On a free loopback port, or on `uds`. `replies` holds every such request that came, `heads` the head of each
    request to any path.
    """

    def __init__(self, script: Script, *, uds: Path | None = None, port: int = 0) -> None:
        self.replies: list[Reply] = []
        self.heads: list[str] = []
        self._script = script
        self._uds = uds
        self.port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FakeServer:
        if self._uds is not None:
            self._server = await asyncio.start_unix_server(self._connected, str(self._uds))
        else:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def endpoint(self) -> Endpoint:
        """For the load client. As a process, this file needs nothing but the standard library."""
        from playground.load.endpoint import Endpoint

        if self._uds is not None:
            return Endpoint(MODEL, uds=str(self._uds))
        return Endpoint(MODEL, host="127.0.0.1", port=self.port)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, one after the other, until it closes."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                path = head.split(" ", 2)[1]
                lengths = [line for line in head.split("\r\n") if line.lower().startswith("content-length:")]
                body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b"{}"
                reply = Reply(json.loads(body), writer)
                if path.endswith("/completions"):
                    self.replies.append(reply)
                    await self._run_script(reply, reader)
                else:
                    await self._answer(reply, path)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _run_script(self, reply: Reply, reader: asyncio.StreamReader) -> None:
        async def watch() -> None:
            with contextlib.suppress(ConnectionError):
                await reader.read()
            reply.closed.set()

        watcher = asyncio.create_task(watch())
        try:
            await self._script(reply)
            # The answer has ended or was cut: only the client's end is still to come.
            reply.writer.close()
            await asyncio.wait([watcher], timeout=5)
        except ConnectionError:
            # Writing may find out before reading does.
            reply.closed.set()
            raise
        finally:
            watcher.cancel()

    async def _answer(self, reply: Reply, path: str) -> None:
        if path == "/health":
            await reply.whole("200 OK", "")
        elif path == "/v1/models":
            model = {"id": MODEL, "object": "model", "owned_by": "fake", "max_model_len": 2048}
            await reply.whole("200 OK", json.dumps({"object": "list", "data": [model]}))
        elif path == "/metrics" and isinstance(self._script, Steady):
            await reply.whole("200 OK", self._script.page(), "text/plain")
        else:
            await reply.whole("404 Not Found", "{}")


async def serve(script: Script, uds: Path | None, port: int) -> None:
    ended = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    async with FakeServer(script, uds=uds, port=port) as server:
        print(f"Application startup complete. {uds or server.port}", flush=True)
        await ended.wait()


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--uds", type=Path)
    parser.add_argument("--rate", type=float, default=200, help="tokens a second")
    parser.add_argument("--tokens", type=int, default=2000, help="at most; a request's max_tokens may be less")
    parser.add_argument("--per-chunk", type=int, default=1, help="tokens in each chunk after the first")
    parser.add_argument("--max-model-len", type=int, default=0, help=f"above {LONGEST} it is refused, as by vLLM")
    given, _ = parser.parse_known_args(argv)
    if given.max_model_len > LONGEST:
        sys.exit(REFUSAL.format(given.max_model_len))
    asyncio.run(serve(Steady(given.rate, given.tokens, given.per_chunk), given.uds, given.port))


if __name__ == "__main__":
    main(sys.argv[1:])
