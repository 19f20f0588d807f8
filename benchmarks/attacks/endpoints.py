"""What an attached endpoint may answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import psutil

from benchmarks.trials import Outcome, Probe, Trial, until
from benchmarks.visitor import Visitor

from .visits import KEY, MIB, runs, visited

# So many tokens are asked for by races of two endpoints, and not when an endpoint is tried before.
TOKENS = 77
# Writes an answer to the request, whose head and body these are.
Answer = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


@contextlib.asynccontextmanager
async def endpoint(answer: Answer) -> AsyncIterator[str]:
    """A server whose answers to a race are written by `answer`, others as they should be. Yields its address."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                models = json.dumps({"data": [{"id": "model", "max_model_len": 4096}]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(models) + models)
            else:
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                await (answer if json.loads(body).get("max_tokens") == TOKENS else steady)(writer, head + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def event(text: str, tokens: int, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    return f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n".encode()


async def steady(writer: asyncio.StreamWriter, _: bytes) -> None:
    for number in range(1, 21):
        writer.write(event("word ", number, "stop" if number == 20 else None))
    writer.write(b"data: [DONE]\n\n")


def attach(visitor: Visitor, *addresses: str) -> None:
    """Fill in the endpoints as the sides of a race."""
    for side, address in enumerate(addresses):
        visitor.fill(
            **{f"side{side}_attached": True, f"side{side}_base_url": address, f"side{side}_model": "model"}
        )
    visitor.fill(asked_max_tokens=TOKENS)


async def attached_run(place: Path, odd: Answer, **more: str) -> tuple[list[tuple[str | None, str]], float, float]:
    """A race of a steady endpoint and an odd one: problem and text of each side's answer, the longest wait of
    others (seconds), and by how much the app grew at most (MiB)."""
    async with (
        endpoint(steady) as good,
        endpoint(odd) as bad,
        visited(place, **more) as (visitor, url, pid),
        Probe(url) as probe,
    ):
        attach(visitor, good, bad)
        process, grown = psutil.Process(pid), 0.0
        before = process.memory_info().rss
        await visitor.send("race")

        def ended() -> bool:
            nonlocal grown
            grown = max(grown, (process.memory_info().rss - before) / MIB)
            return any(status != "running" for _, status in runs(place))

        await until(ended, within_s=60)
        # Opened as well, since figures are computed for whoever looks.
        with contextlib.suppress(httpx.HTTPError):
            await visitor.press("runs", details={"run": runs(place)[0][0]})
        ended()
        with contextlib.closing(sqlite3.connect(place / "history.db")) as db:
            query = "SELECT problem, output_text FROM requests ORDER BY position"
            return db.execute(query).fetchall(), probe.worst_s, grown


async def absurd_usage(place: Path) -> Outcome:
    async def odd(writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(event("a ", 1) + event("b ", 200_000_000, "stop") + b"data: [DONE]\n\n")

    answers, waited, grown = await attached_run(place, odd)
    seen = f"{len(answers)} answers; others waited {waited:.1f} s at most; {grown:.0f} MiB more"
    return Outcome(len(answers) == 2 and answers[0][0] is None and waited < 3 and grown < 500, seen)


async def long_token(place: Path) -> Outcome:
    async def odd(writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(event("x" * 20 * MIB, 1, "stop") + b"data: [DONE]\n\n")

    answers, waited, grown = await attached_run(place, odd)
    good = len(answers) == 2 and answers[0][0] is None and "word" in answers[0][1]
    seen = f"the other side {'went on' if good else 'was lost'}; others waited {waited:.1f} s at most"
    seen += f"; {grown:.0f} MiB more"
    return Outcome(good and waited < 3, seen)


async def echoed_key(place: Path) -> Outcome:
    async def odd(writer: asyncio.StreamWriter, head: bytes) -> None:
        key = KEY if KEY.encode() in head else "no key was sent"
        writer.write(event(f"Your key is {key}", 4, "stop") + b"data: [DONE]\n\n")

    async with endpoint(odd) as address:
        keys = {"PLAYGROUND_ENDPOINT_KEYS": f"{address}={KEY}"}
        async with visited(place, **keys) as (visitor, _, _):
            attach(visitor, address, address)
            await visitor.send("race")
            await until(lambda: any(status != "running" for _, status in runs(place)), within_s=30)
        with contextlib.closing(sqlite3.connect(place / "history.db")) as db:
            texts = db.execute("SELECT output_text FROM requests").fetchall()
    stored = any(KEY.encode() in file.read_bytes() for file in sorted(place.glob("history.db*")))  # noqa: ASYNC240
    seen = f"answers {[text[:30] for (text,) in texts]}; key in the history: {stored}"
    return Outcome(len(texts) == 2 and not stored, seen)


ENDPOINTS = (
    Trial("absurd-usage", "the other side goes on", absurd_usage),
    Trial("long-token", "the other side goes on", long_token),
    Trial("echoed-key", "not stored", echoed_key),
)
