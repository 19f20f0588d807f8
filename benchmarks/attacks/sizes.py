"""Texts, bodies, heads, files and lines of runs that are too long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import psutil

from benchmarks.common import app
from benchmarks.trials import Outcome, Probe, Trial, until
from benchmarks.visitor import API, Visitor

from .visits import MIB, pressed, refused, runs, visited


async def of_size(place: Path, attack: Callable[[Visitor, str], Awaitable[str]]) -> Outcome:
    """Held: it is refused, nobody else waits long, and the process does not grow by much."""
    async with visited(place) as (visitor, url, pid), Probe(url) as probe:
        before = psutil.Process(pid).memory_info().rss
        said = await attack(visitor, url)
        grown = (psutil.Process(pid).memory_info().rss - before) / MIB
        seen = f"{said}; others waited {probe.worst_s:.1f} s at most; {grown:.0f} MiB more"
        return Outcome(said.startswith("refused") and probe.worst_s < 3 and grown < 500, seen)


def field(button: str, **fields: object) -> Callable[[Path], Awaitable[Outcome]]:
    """The attack that fills these fields and presses the button."""

    async def attack(visitor: Visitor, _: str) -> str:
        visitor.fill(**fields)
        return await pressed(visitor, button)

    return lambda place: of_size(place, attack)


async def long_body(visitor: Visitor, _: str) -> str:
    body = b'{"data": ["' + b"x" * 30 * MIB + b'"], "fn_index": 0, "session_hash": "a"}'
    headers = {"Content-Type": "application/json"}
    try:
        answer = await visitor.client.post(f"{API}/queue/join", content=body, headers=headers)
    except httpx.TransportError:
        # It may close the connection before everything was sent.
        return "refused"
    return f"refused with {answer.status_code}" if answer.status_code == 413 else f"answered {answer.status_code}"


async def many_values(visitor: Visitor, _: str) -> str:
    """A body within the limit that is all empty lists: hundreds of times its size as objects."""
    body = b'{"fn_index": 0, "session_hash": "a", "data": [' + b"[]," * 2_500_000 + b"0]}"
    headers = {"Content-Type": "application/json"}
    answers = [await visitor.client.post(f"{API}/queue/join", content=body, headers=headers) for _ in range(5)]
    statuses = {answer.status_code for answer in answers}
    return f"refused with {statuses}" if statuses == {413} else f"answered {statuses}"


async def long_head(_: Visitor, url: str) -> str:
    """Fifty megabytes of short headers, which never end."""
    _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    sent = 0
    try:
        while sent < 50 * MIB:
            writer.write(b"a:b\r\n" * 200_000)
            await asyncio.wait_for(writer.drain(), 10)
            sent += MIB
    except ConnectionError:
        return "refused"
    except TimeoutError:
        pass
    finally:
        writer.close()
    return f"took {sent / MIB:.0f} MiB"


async def unread_answers(place: Path) -> Outcome:
    """A hundred and fifty pages that open a run of a long prompt, and never fetch it."""

    async def attack(visitor: Visitor, _: str) -> str:
        visitor.fill(asked_prompt="x y " * 900_000, asked_max_tokens=20)
        await visitor.press("race")
        await until(lambda: any(status != "running" for _, status in runs(place)), within_s=30)
        for _ in range(150):
            visitor.session = secrets.token_hex(6)
            await visitor.send("runs", details={"run": runs(place)[0][0]})
        await asyncio.sleep(5)
        return "refused or dropped"

    return await of_size(place, attack)


async def nested_upload(visitor: Visitor, _: str) -> str:
    """A file of prompts that is all brackets."""
    content = b"[" * 19 * 1000 * 1000
    answer = await visitor.client.post(f"{API}/upload", files={"files": ("prompts.json", content)})
    if not answer.is_success:
        return f"refused with {answer.status_code}"
    path = answer.json()[0]
    visitor.fill(measure_prompts="upload", measure_upload={"path": path, "meta": {"_type": "gradio.FileData"}})
    return "refused" if refused(await visitor.press("measure-upload", "upload")) else "accepted"


async def many_waiting(place: Path) -> Outcome:
    async with slow(place) as (visitor, url), Probe(url) as probe:
        await visitor.press("race")
        answers = [await pressed(visitor, "wait") for _ in range(60)]
        seen = f"{answers.count('accepted')} of {len(answers)} wait; others waited {probe.worst_s:.1f} s at most"
        return Outcome(answers[-1].startswith("refused") and probe.worst_s < 3, seen)


@contextlib.asynccontextmanager
async def slow(place: Path) -> AsyncIterator[tuple[Visitor, str]]:
    """An app whose races take minutes."""
    with app(place, rate=1) as (_, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            yield visitor, url


SIZES = (
    Trial("long-label", "refused", field("race", side0_label="x" * 5 * MIB)),
    Trial("long-prompt", "refused", field("race", asked_prompt="x" * 300 * MIB)),
    Trial("long-body", "413", lambda place: of_size(place, long_body)),
    Trial("many-values", "413", lambda place: of_size(place, many_values)),
    Trial("long-head", "refused", lambda place: of_size(place, long_head)),
    Trial("unread-answers", "dropped", unread_answers),
    Trial("nested-upload", "refused", lambda place: of_size(place, nested_upload)),
    Trial(
        "synthetic-prompts",
        "refused",
        field("measure", measure_prompts="synthetic", measure_input_tokens=1_000_000, measure_count=10_000),
    ),
    Trial(
        "data-parallel",
        "refused",
        field("race", side0_knobs=json.dumps({"data_parallel_size": "1000000"})),
    ),
    Trial("many-waiting", "refused in the end", many_waiting),
)
