"""A key that an endpoint repeats is stored nowhere, and answers that never end hold nobody."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace

import pytest
from support.fake_server import FakeServer, Reply, token

from playground.domain.errors import WorkFailed
from playground.domain.limits import Limits
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.workload import ChatMessage, Prompt, Sampling
from playground.load import endpoint as endpoints
from playground.load.capabilities import probe
from playground.load.driver_client import MeasuredLoad, RaceLoad
from playground.load.endpoint import Endpoint
from playground.runs.checks.client import AnswerClient

KEY = "sk-0123456789abcdef"
CONVERSATION = (ChatMessage(role="user", content="x"),)


def keyed(server: FakeServer, key: str = KEY) -> Endpoint:
    return replace(server.endpoint, headers={"Authorization": f"Bearer {key}"})


async def raced(endpoint: Endpoint) -> RequestTrace:
    load = RaceLoad([endpoint], CONVERSATION, Sampling(), 30)
    async for _ in load.run():
        # Not even while it runs, where a chunk holds all of it.
        assert KEY not in [chunk.text for chunk in load.traces[0].chunks]
    return load.traces[0]


async def measured(endpoint: Endpoint) -> RequestTrace:
    profile = ConcurrencyProfile(concurrency=1, requests=1)
    load = MeasuredLoad(endpoint, [Prompt(conversation=CONVERSATION)], Sampling(), profile, 0, 30)
    async for _ in load.run():
        pass
    return load.in_order[0]


@pytest.mark.parametrize("drive", [raced, measured])
@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        (["your key: ", KEY, " ok"], ["your key: ", "…", " ok"]),
        (["key ", *KEY, "!"], ["key ", "…", *[""] * (len(KEY) - 1), "!"]),
        (["key sk-0123", "456789abcdef, sk-0", "123456789abcdef"], ["key …", ", …", ""]),
        # Cut short by a limit of tokens.
        (["key sk-01", "234567"], ["key ", ""]),
        (["sk-2"], ["sk-2"]),
    ],
)
async def test_an_answer(drive: object, pieces: list[str], texts: list[str]) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        for number, piece in enumerate(pieces):
            await reply.event(token(piece, [number]))
        await reply.event(token("", finish=KEY))
        await reply.done()

    async with FakeServer(script) as server:
        trace = await drive(keyed(server))  # type: ignore[operator]
    assert [chunk.text for chunk in trace.chunks] == texts
    assert trace.token_ids == list(range(len(pieces)))
    assert KEY not in repr(trace)


async def test_a_short_key_may_be_a_word() -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("EMPTY", [1], finish="stop"))
        await reply.done()

    async with FakeServer(script) as server:
        assert (await raced(keyed(server, "EMPTY"))).output_text == "EMPTY"


async def test_an_answer_that_is_checked() -> None:
    async def script(reply: Reply) -> None:
        await reply.whole("200 OK", f'{{"text": "{KEY}"}}')

    async with FakeServer(script) as server, AnswerClient(keyed(server), 30) as client:
        assert await client.ask("/chat/completions", {}) == '{"text": "…"}'.encode()


async def test_a_probe_that_is_answered_with_the_key() -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(f"not JSON: {KEY}")

    async with FakeServer(script) as server:
        with pytest.raises(WorkFailed) as caught:
            await probe(keyed(server))
    assert KEY not in str(caught.value.params)


async def test_a_probe_whose_answer_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "DEFAULTS", Limits(response_bytes=100_000))

    async def script(reply: Reply) -> None:
        await reply.begin()
        while not reply.closed.is_set():
            await reply.event(token("x" * 1000))

    async with FakeServer(script) as server, asyncio.timeout(30):
        with pytest.raises(WorkFailed) as caught:
            await probe(server.endpoint)
        assert caught.value.message_id == "stream.answer_too_large"
        async with AnswerClient(server.endpoint, 30) as client:
            assert await client.ask("/chat/completions", {}) is None


async def test_an_answer_that_would_grow() -> None:
    async def script(reply: Reply) -> None:
        content = gzip.compress(b"x" * 10_000_000)
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(content)}\r\n\r\n"
        await reply.raw(head.encode() + content)

    async with FakeServer(script) as server, AnswerClient(server.endpoint, 30) as client:
        assert await client.ask("/chat/completions", {}) is None
