"""Endpoints that send too much: their own request ends with a sentence, and the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.fake_server import FakeServer, Reply, Script, Steady, payload, role, token

from playground.domain.errors import WorkFailed
from playground.domain.limits import Limits
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.workload import ChatMessage, Prompt, Sampling
from playground.i18n import LOCALES, say_message
from playground.load import capabilities, output
from playground.load.answer.sse import EventParser, StreamError
from playground.load.driver_client import MeasuredLoad, RaceLoad
from playground.load.endpoint import Endpoint
from playground.processes import LINE_LIMIT
from playground.runs.checks.client import AnswerClient

CONVERSATION = (ChatMessage(role="user", content="x"),)
SMALL = Limits(event_bytes=100_000, response_bytes=400_000, load_bytes=600_000)


async def race(*endpoints: Endpoint, limits: Limits = SMALL) -> list[RequestTrace]:
    load = RaceLoad(endpoints, CONVERSATION, Sampling(), 30, limits=limits)
    async with asyncio.timeout(60):
        async for _ in load.run():
            pass
    return load.traces


async def measure(
    endpoint: Endpoint, limits: Limits = SMALL, at_once: int = 1, requests: int = 1
) -> list[RequestTrace]:
    profile = ConcurrencyProfile(concurrency=at_once, requests=requests)
    load = MeasuredLoad(endpoint, [Prompt(conversation=CONVERSATION)], Sampling(), profile, 0, 30, limits=limits)
    async with asyncio.timeout(60):
        async for _ in load.run():
            pass
    return load.in_order


def problem(trace: RequestTrace) -> str | None:
    if trace.problem is None:
        return None
    assert all(str(trace.problem.params["detail"]) in say_message(trace.problem, locale) for locale in LOCALES)
    return trace.problem.message_id


async def begun(reply: Reply) -> None:
    await reply.begin()
    await reply.event(role())
    await reply.event(token("first", [1]))


async def huge_event(reply: Reply) -> None:
    await begun(reply)
    await reply.event(token("x" * 20_000_000, [2]))
    await reply.done()


async def endless_line(reply: Reply) -> None:
    await begun(reply)
    await reply.block(b"data: ")
    while not reply.closed.is_set():
        await reply.block(b"x" * 10_000)


async def endless_event(reply: Reply) -> None:
    await begun(reply)
    while not reply.closed.is_set():
        await reply.block(b"data: x\ndata: y\n" * 500)


async def endless_answer(reply: Reply) -> None:
    await begun(reply)
    while not reply.closed.is_set():
        await reply.event(token("y" * 1000, [3]))


async def endless_head(reply: Reply) -> None:
    await reply.raw(b"HTTP/1.1 200 OK\r\n")
    while not reply.closed.is_set():
        await reply.raw(b"x-more: " + b"x" * 5000 + b"\r\n")


FAULTS: dict[str, tuple[Callable[[Reply], Any], set[str], str]] = {
    "a token of 20 MB": (huge_event, {"stream.event_too_large", "stream.answer_too_large"}, "first"),
    "a line without an end": (endless_line, {"stream.event_too_large", "stream.answer_too_large"}, "first"),
    "an event without an end": (endless_event, {"stream.event_too_large", "stream.answer_too_large"}, "first"),
    "an answer without an end": (endless_answer, {"stream.answer_too_large", "stream.load_too_large"}, "firsty"),
    "a head without an end": (endless_head, {"stream.answer_too_large", "stream.malformed"}, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_race_goes_on(fault: str) -> None:
    script, expected, text = FAULTS[fault]
    async with FakeServer(script) as bad, FakeServer(Steady(rate=1000, tokens=30)) as good:
        broken, whole = await race(bad.endpoint, good.endpoint)
    assert problem(broken) in expected
    assert broken.output_text.startswith(text)
    assert problem(whole) is None
    assert whole.output_tokens == 30


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_measurement_goes_on(fault: str) -> None:
    script, expected, text = FAULTS[fault]
    asked = 0

    async def first_is_bad(reply: Reply) -> None:
        nonlocal asked
        asked += 1
        await (script if asked == 1 else Steady(rate=1000, tokens=5))(reply)

    async with FakeServer(first_is_bad) as server:
        broken, *others = await measure(server.endpoint, requests=3)
    assert problem(broken) in expected
    assert broken.output_text.startswith(text)
    assert [problem(trace) for trace in others] == [None, None]


async def test_a_token_of_20_mb_within_the_limits() -> None:
    """The host has raised them: still no line is too long for its reader."""
    raised = Limits(event_bytes=10**9, response_bytes=10**9)
    async with FakeServer(huge_event) as bad, FakeServer(Steady(rate=1000, tokens=30)) as good:
        large, whole = await race(bad.endpoint, good.endpoint, limits=raised)
        (measured,) = await measure(bad.endpoint, raised)
    assert len(large.output_text) == len(measured.output_text) == len("first") + 20_000_000
    assert problem(whole) is None


async def test_all_answers_together() -> None:
    async with FakeServer(endless_answer) as server:
        traces = await measure(server.endpoint, Limits(response_bytes=10**9, load_bytes=300_000), 4, 4)
    assert {problem(trace) for trace in traces} == {"stream.load_too_large"}


async def test_what_was_reported_is_not_held() -> None:
    """As many bytes again in each of many answers, one after the other."""
    async with FakeServer(Steady(rate=100_000, tokens=200)) as server:
        traces = await measure(server.endpoint, Limits(load_bytes=150_000), requests=20)
    assert {problem(trace) for trace in traces} == {None}


async def test_a_long_answer_comes_in_parts() -> None:
    async def long(reply: Reply) -> None:
        await reply.begin()
        for number in range(30):
            await reply.event(token(f"{number:02}" + "z" * 100_000, [number]))
        await reply.event(token("", finish="length"))
        await reply.done()

    async with FakeServer(long) as server:
        (trace,) = await measure(server.endpoint, Limits())
    assert problem(trace) is None
    assert trace.token_ids == list(range(30))
    assert [chunk.text[:2] for chunk in trace.chunks] == [f"{number:02}" for number in range(30)]


def test_a_line_that_is_too_long_goes_without_its_content(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    event = {"event": "end", "request": 1, "finish_reason": "stop", "problem": None}
    output.emit(event | {"speculation": {"x": "y" * LINE_LIMIT}})
    written = json.loads(capfdbinary.readouterr().out)
    assert written["problem"]["kind"] == "answer_too_large"
    assert written["speculation"] is None


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_comments_and_many_events_are_no_large_event(size: int) -> None:
    parser, data = EventParser(most=50), b": keep alive\n\ndata: x\n\nevent: y\ndata: z\r\n\r\n" * 100
    events = [event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])]
    assert events == [b"x", b"z"] * 100
    with pytest.raises(StreamError):
        parser.feed(b"data: " + b"x" * 60 + b"\n\n")


@pytest.mark.parametrize("content", [5, ["a"], {"a": 1}])
async def test_a_text_that_is_none(content: Any) -> None:
    async def script(reply: Reply) -> None:
        await begun(reply)
        await reply.event(token("", [2]) | {"choices": [{"text": content}]})

    async with FakeServer(script) as server:
        (trace,) = await race(server.endpoint)
    assert problem(trace) == "stream.foreign"
    assert trace.output_text == "first"


@pytest.mark.parametrize("ids", ["ab", [1, "b"], [1.5], [-1], [[1]], {"a": 1}])
async def test_token_ids_that_are_none(ids: Any) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("text", finish="stop") | {"choices": [{"text": "text", "token_ids": ids}]})
        await reply.done()

    async with FakeServer(script) as server:
        (trace,) = await race(server.endpoint)
    assert problem(trace) is None
    assert trace.output_text == "text"
    assert trace.token_ids is None


async def absurd_count(reply: Reply) -> None:
    await begun(reply)
    await reply.event(token("second", completion_tokens=200_000_000))
    await reply.event(payload({}, finish="stop", completion_tokens=200_000_001))
    await reply.done()


async def test_a_count_of_200_million_tokens() -> None:
    """Once 5 GB, for a list of as many inter-token latencies."""
    async with FakeServer(absurd_count) as bad, FakeServer(Steady(rate=1000, tokens=5)) as good:
        counted, whole = await race(bad.endpoint, good.endpoint)
        (measured,) = await measure(bad.endpoint)
    assert [problem(trace) for trace in (counted, whole, measured)] == [
        "stream.too_many_tokens",
        None,
        "stream.too_many_tokens",
    ]
    assert counted.output_text == measured.output_text == "first"


async def many_ids(reply: Reply) -> None:
    await begun(reply)
    await reply.event(token("second", list(range(200))))
    await reply.done()


async def many_chunks(reply: Reply) -> None:
    await begun(reply)
    for _ in range(200):
        await reply.event(token("x"))
    await reply.done()


@pytest.mark.parametrize(("script", "text"), [(many_ids, "first"), (many_chunks, "first" + "x" * 99)])
async def test_more_tokens_than_the_limit(script: Script, text: str) -> None:
    """Once four million pieces of one answer, for which the event loop stood still for 12 s."""
    limits = Limits(output_tokens=100)
    async with FakeServer(script) as server:
        (raced,) = await race(server.endpoint, limits=limits)
        (measured,) = await measure(server.endpoint, limits)
    assert problem(raced) == problem(measured) == "stream.too_many_tokens"
    assert raced.output_text == measured.output_text == text


async def test_where_only_time_ends_the_load_the_limit_does() -> None:
    profile = ConcurrencyProfile(concurrency=4, duration_s=3600)
    prompts = [Prompt(conversation=CONVERSATION)]
    async with FakeServer(Steady(rate=100_000, tokens=1)) as server:
        load = MeasuredLoad(server.endpoint, prompts, Sampling(), profile, 0, 30, limits=Limits(run_requests=10))
        async with asyncio.timeout(60):
            async for _ in load.run():
                pass
    assert len(load.in_order) == 10


async def test_an_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never silent for long, and never whole."""

    async def dripping(reply: Reply) -> None:
        await reply.begin()
        with contextlib.suppress(ConnectionError):
            while not reply.closed.is_set():
                await reply.block(b" ")
                await asyncio.sleep(0.01)

    monkeypatch.setattr(capabilities, "TIMEOUT_S", 0.3)
    async with FakeServer(dripping) as server:
        with pytest.raises(WorkFailed, match="unfinished"):
            await capabilities.probe(server.endpoint)
        async with AnswerClient(server.endpoint, 0.15) as client:
            assert await client.answer(CONVERSATION, Sampling()) is None


async def test_what_comes_after_the_end_is_no_part_of_the_answer() -> None:
    events = [json.dumps(token("whole", [1])), "[DONE]", json.dumps(token("more", [2])), "[DONE]"]

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.block("".join(f"data: {event}\n\n" for event in events).encode())
        await reply.done()

    async with FakeServer(script) as server:
        (raced,) = await race(server.endpoint)
        (measured,) = await measure(server.endpoint)
    assert problem(raced) is problem(measured) is None
    assert raced.output_text == measured.output_text == "whole"


async def test_an_endpoint_that_answers_in_another_protocol() -> None:
    """Once the end of the load's whole process."""

    async def first_switches(reply: Reply) -> None:
        nonlocal requests
        requests += 1
        if requests > 1:
            await Steady(rate=1000, tokens=5)(reply)
            return
        await reply.raw(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        reply.cut()

    requests = 0
    async with FakeServer(first_switches) as server:
        (raced,) = await race(server.endpoint)
    assert problem(raced) == "stream.http"
    requests = 0
    async with FakeServer(first_switches) as server:
        broken, whole = await measure(server.endpoint, requests=2)
    assert (problem(broken), problem(whole)) == ("stream.http", None)


ODD_EVENTS: tuple[dict[str, Any], ...] = (
    {"choices": 5},
    {"choices": "text"},
    {"choices": [None]},
    {"choices": [], "usage": [1]},
    {"choices": [], "usage": {"prompt_tokens_details": "x"}},
    {"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": {"a": 1}}}},
)


@pytest.mark.parametrize("event", ODD_EVENTS)
async def test_a_probe_answered_by_other_shapes(event: dict[str, Any]) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(event)
        await reply.done()

    async with FakeServer(script) as server:
        known = await capabilities.probe(server.endpoint)
    assert not known.token_ids
