"""Measured mode as the playground uses it: by `MeasuredLoad`, the driver in its own process, over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psutil
import pytest
from support.fake_server import FakeServer, Reply, Script, Steady, payload, role, token
from support.paced import Seen, paced
from support.waiting import until

from playground.config import Config
from playground.domain.record.metrics import trace_figures
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.load_profile import (
    ConcurrencyProfile,
    LoadProfile,
    RampProfile,
    RateProfile,
    WavesProfile,
)
from playground.domain.spec.schedule import schedule
from playground.domain.spec.workload import ChatMessage, Prompt, Sampling
from playground.load.driver_client import MeasuredLoad
from playground.load.endpoint import Capabilities, Endpoint

Serve = Callable[..., AbstractAsyncContextManager[Seen]]


@pytest.fixture(params=["uds", "tcp"])
def serve(request: pytest.FixtureRequest, config: Config) -> Serve:
    uds = config.state / "e.sock" if request.param == "uds" else None
    return lambda **options: paced(uds=uds, **options)


def prompts(*lengths: int, text: str = "你好") -> list[Prompt]:
    return [
        Prompt(conversation=(ChatMessage(role="user", content=f"{text} {number}"),), max_tokens=length)
        for number, length in enumerate(lengths)
    ]


def load_for(
    endpoint: Endpoint,
    profile: LoadProfile,
    asks: list[Prompt] | None = None,
    seed: int = 0,
    idle_timeout_s: float = 60,
) -> MeasuredLoad:
    return MeasuredLoad(endpoint, asks or prompts(8), Sampling(ignore_eos=True), profile, seed, idle_timeout_s)


async def drive(load: MeasuredLoad) -> list[RequestTrace]:
    async with asyncio.timeout(60):
        async for _ in load.run():
            pass
    return load.in_order


def problems(traces: list[RequestTrace]) -> list[str | None]:
    return [trace.problem.message_id if trace.problem else None for trace in traces]


def asked_for(seen: Seen) -> list[str]:
    return [body["messages"][-1]["content"] for _, body in seen.asked]


# What is recorded


@pytest.mark.parametrize("per_chunk", [1, 4])
async def test_counts_texts_and_stamps(serve: Serve, per_chunk: int) -> None:
    async with serve(per_chunk=per_chunk) as seen:
        load = load_for(seen.endpoint, ConcurrencyProfile(concurrency=3, requests=9), prompts(8, 12))
        traces = await drive(load)
    assert problems(traces) == [None] * 9
    assert all(trace.ended and trace.finish_reason == "length" for trace in traces)
    for trace, (_, body) in zip(traces, seen.asked, strict=True):
        assert trace.counted_tokens == trace.output_tokens == body["max_tokens"]
        assert trace.token_ids == list(range(body["max_tokens"]))
        assert {chunk.tokens for chunk in trace.chunks} == {per_chunk}
        assert trace.output_text.split()[0] == "word0"
        assert trace.prompt_tokens == 32
        assert trace.conversation[-1].content == body["messages"][-1]["content"]
        times = [0.0, *(chunk.ms for chunk in trace.chunks)]
        assert all(a <= b for a, b in pairwise(times))
        assert trace.sent_ms >= 0
    assert load.client_cpu_s is not None
    assert load.wall_s is not None
    assert load.wall_s * 1000 >= max(trace.sent_ms + trace.chunks[-1].ms for trace in traces)


@pytest.mark.alone
async def test_stamps_are_close_to_the_servers_own(serve: Serve) -> None:
    async with serve(first_ms=20, gap_ms=5) as seen:
        traces = await drive(load_for(seen.endpoint, ConcurrencyProfile(concurrency=4, requests=4), prompts(40)))
    figures = trace_figures(traces)
    assert figures.ttft_ms is not None
    assert figures.tpot_ms is not None
    truth = sum(answer.tpot_ms for answer in seen.answers) / 4
    # Wide, for a busy machine; the benchmark says how close it really is.
    assert figures.tpot_ms.p50 == pytest.approx(truth, rel=0.1)
    assert 20 <= figures.ttft_ms.p50 < 60


async def test_a_request_is_what_the_engine_needs(serve: Serve) -> None:
    async with serve() as seen:
        await drive(load_for(seen.endpoint, ConcurrencyProfile(requests=2)))
        await drive(load_for(seen.endpoint, ConcurrencyProfile(requests=1)))
    bodies = [body for _, body in seen.asked]
    assert bodies[0]["messages"] == [{"role": "user", "content": "你好 0"}]
    assert bodies[0]["return_token_ids"] is bodies[0]["ignore_eos"] is True
    # Neither the same prompt sent twice nor a second trial may hit the prefix cache.
    assert len({body["cache_salt"] for body in bodies}) == 3


async def test_completions_and_an_endpoint_that_knows_little(serve: Serve) -> None:
    plain = Capabilities(False, False, True, False, False)
    async with serve() as seen:
        endpoint = replace(seen.endpoint, api="completions", capabilities=plain)
        traces = await drive(load_for(endpoint, ConcurrencyProfile(requests=2)))
    _, body = seen.asked[0]
    assert body["prompt"] == "你好 0"
    assert not {"messages", "return_token_ids", "cache_salt", "ignore_eos"} & body.keys()
    assert body["stream_options"] == {"include_usage": True}
    assert problems(traces) == [None, None]
    assert [chunk.tokens for chunk in traces[0].chunks] == [None] * 8
    assert traces[0].token_ids is None
    assert traces[0].counted_tokens == 8


# Profiles


async def test_connections_are_kept(serve: Serve) -> None:
    async with serve(first_ms=1, gap_ms=1) as seen:
        traces = await drive(load_for(seen.endpoint, ConcurrencyProfile(concurrency=3, requests=30)))
    assert problems(traces) == [None] * 30
    assert seen.connections == 3
    assert seen.most_at_once <= 3


async def test_waves_never_overlap(serve: Serve) -> None:
    async with serve() as seen:
        await drive(load_for(seen.endpoint, WavesProfile(concurrency=4, requests=12), prompts(2, 9, 16)))
    waves = [seen.answers[start : start + 4] for start in (0, 4, 8)]
    for one, following in pairwise(waves):
        assert max(answer.written[-1] for answer in one) <= min(answer.arrived for answer in following)
    # Within a wave all run together.
    assert seen.most_at_once == 4


async def test_ramp_grows(serve: Serve) -> None:
    profile = RampProfile(first=1, last=4, requests=16)
    async with serve() as seen:
        await drive(load_for(seen.endpoint, profile, prompts(6)))
    planned = list(schedule(profile.pace, 0, 1))
    for index, answer in enumerate(seen.answers):
        before = sum(other.written[-1] > answer.arrived for other in seen.answers[:index])
        assert before < planned[index].limit
    assert seen.most_at_once == 4


@pytest.mark.alone
@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
async def test_rate_keeps_the_schedules_offsets(serve: Serve, arrivals: Any) -> None:
    profile = RateProfile(requests_per_s=40, arrivals=arrivals, requests=20)
    async with serve(first_ms=1, gap_ms=1) as seen:
        traces = await drive(load_for(seen.endpoint, profile, prompts(4, 4, 4), seed=3))
    planned = list(schedule(profile.pace, 3, 3))
    late = sorted(trace.sent_ms - item.at_ms for trace, item in zip(traces, planned, strict=True))
    assert late[0] >= 0
    assert late[len(late) // 2] < 5
    assert asked_for(seen) == [f"你好 {item.prompt}" for item in planned]


async def test_rate_respects_its_cap(serve: Serve) -> None:
    profile = RateProfile(requests_per_s=1000, arrivals="constant", concurrency=3, requests=12)
    async with serve(first_ms=10, gap_ms=2) as seen:
        traces = await drive(load_for(seen.endpoint, profile))
    assert problems(traces) == [None] * 12
    assert seen.most_at_once == 3


async def test_the_same_seed_asks_in_the_same_order(serve: Serve) -> None:
    orders = []
    async with serve(first_ms=1, gap_ms=1) as seen:
        for seed in (5, 5, 6):
            seen.asked.clear()
            profile = ConcurrencyProfile(concurrency=1, requests=12)
            await drive(load_for(seen.endpoint, profile, prompts(*[2] * 6), seed))
            orders.append(asked_for(seen))
    assert orders[0] == orders[1] != orders[2]


async def test_time_ends_it_and_nothing_is_cut(serve: Serve) -> None:
    async with serve(first_ms=20, gap_ms=5) as seen:
        load = load_for(seen.endpoint, ConcurrencyProfile(concurrency=2, duration_s=0.5))
        traces = await drive(load)
    assert problems(traces) == [None] * len(traces)
    assert len(traces) >= 4
    assert max(trace.sent_ms for trace in traces) < 500
    assert load.wall_s is not None
    assert load.wall_s < 5


async def test_what_has_ended_is_reported_while_others_stream(serve: Serve) -> None:
    async with serve(first_ms=1, gap_ms=1) as seen:
        load = load_for(seen.endpoint, ConcurrencyProfile(concurrency=9, requests=9), prompts(4, *[4000] * 8))
        async with asyncio.timeout(60):
            async for index in load.run():
                short = load.traces[index].counted_tokens == 4
                streaming = [answer for answer in seen.answers if len(answer.written) < answer.tokens]
                break
        load.stop()
    assert short
    assert len(streaming) == 8


# Servers that close, and faults


async def test_a_server_that_closes_after_each_answer() -> None:
    """No keep-alive, and no word of it: requests that leave on a closing connection are sent again."""
    async with FakeServer(Steady(rate=1000, tokens=4)) as server:
        traces = await drive(load_for(server.endpoint, ConcurrencyProfile(concurrency=3, requests=15)))
    assert problems(traces) == [None] * 15
    assert [trace.counted_tokens for trace in traces] == [4] * 15
    assert len(server.replies) == 15


FAULTS: dict[str, tuple[Callable[[Reply], Any], str]] = {}


def fault(name: str, problem: str) -> Callable[[Callable[[Reply], Any]], Callable[[Reply], Any]]:
    def remember(script: Callable[[Reply], Any]) -> Callable[[Reply], Any]:
        FAULTS[name] = (script, problem)
        return script

    return remember


@fault("cut", "stream.cut")
async def _cut(reply: Reply) -> None:
    reply.cut()


@fault("malformed", "stream.malformed")
async def _malformed(reply: Reply) -> None:
    await reply.event('{"choices": [')
    await reply.done()


@fault("error object", "stream.engine")
async def _error(reply: Reply) -> None:
    await reply.event({"error": {"message": "EngineCore died", "code": 500}})
    await reply.done()


@fault("silent", "stream.silent")
async def _silent(reply: Reply) -> None:
    await reply.closed.wait()


@fault("no chunk length", "stream.malformed")
async def _not_http(reply: Reply) -> None:
    await reply.raw(b"this is no chunk length\r\n")
    reply.cut()


@fault("ended without an end", "stream.cut")
async def _unfinished(reply: Reply) -> None:
    await reply.raw(b"0\r\n\r\n")


def every_third(break_it: Callable[[Reply], Any], whole: bool = False) -> Script:
    """A good answer, but for each third request."""
    count = 0

    async def script(reply: Reply) -> None:
        nonlocal count
        count += 1
        broken = count % 3 == 0
        if broken and whole:
            await break_it(reply)
            return
        await reply.begin()
        await reply.event(role())
        await reply.event(token("a", [1], completion_tokens=1))
        if broken:
            await break_it(reply)
            return
        await reply.event(token("b", [2], completion_tokens=2, finish="stop"))
        await reply.event(payload(completion_tokens=2))
        await reply.done()

    return script


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_hurts_only_its_own_request(name: str) -> None:
    break_it, problem = FAULTS[name]
    async with FakeServer(every_third(break_it)) as server:
        limit_s = 0.5 if problem == "stream.silent" else 60
        profile = ConcurrencyProfile(concurrency=2, requests=6)
        traces = await drive(load_for(server.endpoint, profile, idle_timeout_s=limit_s))
    assert sorted(map(str, problems(traces))) == sorted(["None"] * 4 + [problem] * 2)
    for trace in traces:
        assert trace.output_text == ("a" if trace.problem else "ab")
        assert trace.output_tokens == (1 if trace.problem else 2)


async def _refused(reply: Reply) -> None:
    await reply.whole("500 Internal Server Error", '{"error": {"message": "no room"}}')


async def _refused_until_close(reply: Reply) -> None:
    await reply.raw(b'HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n{"error": {"message": "no room"}}')
    reply.cut()


@pytest.mark.parametrize("refuse", [_refused, _refused_until_close])
async def test_refused_before_the_stream(refuse: Callable[[Reply], Any]) -> None:
    async with FakeServer(every_third(refuse, whole=True)) as server:
        traces = await drive(load_for(server.endpoint, ConcurrencyProfile(concurrency=1, requests=3)))
    assert problems(traces) == [None, None, "stream.http"]
    assert traces[2].problem is not None
    assert traces[2].problem.params["detail"] == "HTTP 500: no room"


async def test_trailers_end_an_answer_too() -> None:
    """An end in a form that the quick look does not know: found when the stream has been quiet for a while."""

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("a", [1], finish="stop"))
        await reply.event("[DONE]")
        await reply.raw(b"0\r\nServer-Timing: x\r\n\r\n")
        await reply.closed.wait()

    async with FakeServer(script) as server:
        traces = await drive(load_for(server.endpoint, ConcurrencyProfile(requests=2)))
    assert problems(traces) == [None, None]


@pytest.mark.parametrize("kind", ["uds", "tcp"])
async def test_nobody_answers(config: Config, kind: str) -> None:
    tcp = Endpoint("m", host="127.0.0.1", port=1)
    endpoint = tcp if kind == "tcp" else Endpoint("m", uds=str(config.state / "none"))
    traces = await drive(load_for(endpoint, ConcurrencyProfile(concurrency=2, duration_s=30)))
    # It gives up long before the time is over.
    assert 2 <= len(traces) <= 20
    assert set(problems(traces)) == {"stream.connect"}


# Stopping


async def test_stop_in_the_middle_keeps_what_came(serve: Serve) -> None:
    async with serve(first_ms=5, gap_ms=20) as seen:
        load = load_for(seen.endpoint, ConcurrencyProfile(concurrency=2, requests=50), prompts(5, 500))
        first = True
        async with asyncio.timeout(30):
            async for _ in load.run():
                if first:
                    first = False
                    load.stop()
        await until(lambda: all(answer.connection.closed for answer in seen.answers[-2:]))
    assert None in problems(load.in_order)
    cut = [trace for trace in load.in_order if trace.problem]
    assert problems(cut) == ["stream.stopped"] * len(cut)
    assert len(cut) <= 2
    assert len(load.traces) == len(seen.answers)
    assert load.wall_s is not None


async def test_sigterm_is_a_stop(serve: Serve) -> None:
    async with serve(first_ms=1, gap_ms=10) as seen:
        load = load_for(seen.endpoint, ConcurrencyProfile(requests=1), prompts(5000))
        task = asyncio.create_task(drive(load))
        await until(lambda: bool(seen.answers) and len(seen.answers[0].written) > 5)
        for child in psutil.Process(os.getpid()).children():
            if "playground.load.driver" in child.cmdline():
                child.send_signal(signal.SIGTERM)
        (trace,) = await task
    assert problems([trace]) == ["stream.stopped"]
    assert len(trace.chunks) > 3


async def test_stop_before_the_driver_is_ready(serve: Serve) -> None:
    async with serve() as seen:
        load = load_for(seen.endpoint, ConcurrencyProfile(concurrency=2, duration_s=60), prompts(1000))
        load.stop()
        traces = await drive(load)
    assert set(problems(traces)) <= {"stream.stopped"}


async def test_a_key_goes_to_the_endpoint_and_nowhere_else() -> None:
    endpoint = Endpoint.from_url("http://127.0.0.1:9/v1", "m", key="sk-secret")
    assert "sk-secret" not in repr(endpoint)
    assert endpoint.for_plan()["headers"]["Authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in json.dumps(endpoint.body(prompts(1)[0].conversation, Sampling()))
