"""The load driver as the playground uses it: by `RaceLoad`, in its own process, against a bad server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import psutil
import pytest
from support.fake_server import FakeServer, Reply, Script, Steady, payload, role, token
from support.paths import ROOT
from support.waiting import gone, until

from playground.config import Config
from playground.domain.record.metrics import request_figures
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.workload import ChatMessage, Sampling
from playground.i18n import LOCALES, say_message
from playground.load.driver_client import RaceLoad
from playground.load.endpoint import Endpoint

CONVERSATION = (ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="你好 👋"))
Serve = Callable[[Script], AbstractAsyncContextManager[FakeServer]]


@pytest.fixture(params=["uds", "tcp"])
def serve(request: pytest.FixtureRequest, config: Config) -> Serve:
    """Every case runs over both kinds of socket: how a cut shows differs."""
    return lambda script: FakeServer(script, uds=config.state / "e.sock" if request.param == "uds" else None)


def load_for(*endpoints: Endpoint, idle_timeout_s: float = 60) -> RaceLoad:
    return RaceLoad(endpoints, CONVERSATION, Sampling(max_tokens=8, stop=("END",)), idle_timeout_s)


async def drive(load: RaceLoad) -> RequestTrace:
    async for _ in load.run():
        pass
    return load.traces[0]


def message_of(trace: RequestTrace) -> str | None:
    """The message id; that the message can be said in each language is checked on the way."""
    if trace.problem is None:
        return None
    for locale in LOCALES:
        assert say_message(trace.problem, locale)
    return trace.problem.message_id


# What a good answer looks like


async def test_request_is_what_the_engine_needs(serve: Serve) -> None:
    async with serve(Steady(rate=1000, tokens=3)) as server:
        await drive(load_for(server.endpoint))
        await drive(load_for(server.endpoint))
    body, again = (reply.body for reply in server.replies)
    assert body["messages"] == [message.model_dump() for message in CONVERSATION]
    assert body["stream"] is True
    assert body["return_token_ids"] is True
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert (body["max_tokens"], body["stop"], body["temperature"]) == (8, ["END"], 0.0)
    # None means the engine's default: it must not be sent.
    assert "top_p" not in body
    # The same prompt sent twice must not hit the prefix cache.
    assert body["cache_salt"] != again["cache_salt"]


async def test_steady_stream(serve: Serve) -> None:
    async with serve(Steady(rate=500, tokens=5)) as server:
        trace = await drive(load_for(server.endpoint))
    assert trace.problem is None
    assert trace.ended
    assert [chunk.tokens for chunk in trace.chunks] == [1, 1, 1, 1, 1]
    assert trace.token_ids == [0, 1, 2, 3, 4]
    assert [piece.split("@")[0] for piece in trace.output_text.split()] == ["0", "1", "2", "3", "4"]
    assert (trace.finish_reason, trace.prompt_tokens, trace.output_tokens) == ("length", 7, 5)
    times = [chunk.ms for chunk in trace.chunks]
    assert times == sorted(times)
    assert times[0] > 0


async def test_several_tokens_in_one_chunk_and_the_step_record(serve: Serve) -> None:
    async with serve(Steady(rate=500, tokens=8, per_chunk=3)) as server:
        trace = await drive(load_for(server.endpoint))
    assert [chunk.tokens for chunk in trace.chunks] == [1, 3, 3, 1]
    assert trace.counted_tokens == 8
    assert trace.steps is not None
    assert (trace.steps.accepted, trace.steps.drafted) == ((2, 2), (2, 2))


@pytest.mark.parametrize(
    "record",
    [
        [1],
        {"num_spec_steps": 1, "per_step_accepted": [1]},
        {"num_spec_steps": 1, "per_step_accepted": 5, "per_step_drafted": 5},
        {"num_spec_steps": 1, "per_step_accepted": [1, 2], "per_step_drafted": [3]},
        {"num_spec_steps": 1, "per_step_accepted": [-1], "per_step_drafted": [3]},
        {"num_spec_steps": 1, "per_step_accepted": ["1"], "per_step_drafted": [3]},
    ],
    ids=["a list", "none drafted", "numbers", "other lengths", "negative", "text"],
)
async def test_a_step_record_that_does_not_fit_is_none(config: Config, record: object) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("a", [1], finish="stop"))
        await reply.event(payload(completion_tokens=1, metrics={"speculative_decoding": record}))
        await reply.done()

    async with FakeServer(script) as server:
        trace = await drive(load_for(server.endpoint))
    assert (trace.steps, trace.problem, trace.output_text) == (None, None, "a")


async def test_half_an_emoji_can_be_kept(config: Config) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(r'{"choices":[{"delta":{"content":"a\ud83d"},"token_ids":[9],"finish_reason":"stop"}]}')
        await reply.done()

    async with FakeServer(script) as server:
        trace = await drive(load_for(server.endpoint))
    assert (trace.output_text, trace.problem) == ("a\ufffd", None)


async def test_both_sides_stream_at_once(config: Config) -> None:
    async with FakeServer(Steady(tokens=4)) as tcp, FakeServer(Steady(tokens=6), uds=config.state / "b") as unix:
        load = load_for(tcp.endpoint, unix.endpoint)
        await drive(load)
    assert [trace.counted_tokens for trace in load.traces] == [4, 6]
    assert [trace.problem for trace in load.traces] == [None, None]


async def test_role_only_chunk_is_not_the_first_token(serve: Serve) -> None:
    go_on = asyncio.Event()

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(role())
        await go_on.wait()
        await reply.event(token("a", [1]))
        await reply.event(payload({}, finish="stop"))
        await reply.done()

    async with serve(script) as server:
        load = load_for(server.endpoint)
        run = load.run()
        await anext(run)
        # Sent, and the role has come: yet there is no chunk until the token does.
        await until(lambda: bool(server.replies))
        await asyncio.sleep(0.1)
        assert load.traces[0].chunks == []
        go_on.set()
        async for _ in run:
            pass
    trace = load.traces[0]
    assert [chunk.text for chunk in trace.chunks] == ["a"]
    assert request_figures(trace).ttft_ms == trace.chunks[0].ms


async def test_running_usage_without_ids_counts_tokens(serve: Serve) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(role() | {"usage": payload(completion_tokens=0)["usage"]})
        for text, so_far in (("a", 1), ("bcd", 4), ("e", 5)):
            await reply.event(token(text, completion_tokens=so_far))
        await reply.event(payload({}, finish="stop", completion_tokens=5))
        await reply.event(payload(completion_tokens=5))
        await reply.done()

    async with serve(script) as server:
        trace = await drive(load_for(server.endpoint))
    assert [chunk.tokens for chunk in trace.chunks] == [1, 3, 1]
    assert trace.token_ids is None
    assert trace.counted_tokens == 5
    assert not request_figures(trace).approximate


@pytest.mark.parametrize("final_usage", [True, False])
async def test_no_counts_on_the_way(serve: Serve, final_usage: bool) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        for text in ("one ", "two ", "three"):
            await reply.event(token(text))
            await asyncio.sleep(0.02)
        await reply.event(payload({}, finish="stop"))
        if final_usage:
            await reply.event(payload(completion_tokens=9))
        await reply.done()

    async with serve(script) as server:
        trace = await drive(load_for(server.endpoint))
    figures = request_figures(trace)
    assert [chunk.tokens for chunk in trace.chunks] == [None, None, None]
    # Chunks are never counted as tokens: the usage decides, else it is unknown.
    assert figures.output_tokens == (9 if final_usage else None)
    assert figures.approximate
    assert figures.itl_ms is None
    span = trace.chunks[-1].ms - trace.chunks[0].ms
    assert figures.tpot_ms == (pytest.approx(span / 8) if final_usage else None)


async def test_characters_cut_by_segments(serve: Serve) -> None:
    text = "汉字🙂é"

    async def script(reply: Reply) -> None:
        await reply.begin()
        data = f'data: {{"choices":[{{"delta":{{"content":"{text}"}},"token_ids":[1,2]}}]}}\n\n'.encode()
        await reply.raw(b"%x\r\n" % len(data))
        # The middle of the emoji, and of a Chinese character, falls between two segments.
        for piece in (data[:34], data[34:36], data[36:41], data[41:43], data[43:]):
            await reply.raw(piece)
            await asyncio.sleep(0.03)
        await reply.raw(b"\r\n")
        await reply.event(token("完 🎉", [3], finish="stop"))
        await reply.done()

    async with serve(script) as server:
        trace = await drive(load_for(server.endpoint))
    assert [chunk.text for chunk in trace.chunks] == [text, "完 🎉"]
    assert trace.problem is None


# What goes wrong: each fault has its message, and what arrived is kept


async def _cut(reply: Reply) -> None:
    reply.cut()


async def _cut_after_finish(reply: Reply) -> None:
    # The usage and [DONE] are missing: the answer may be whole, but that was not said.
    await reply.event(token("c", [3], finish="stop"))
    reply.cut()


async def _malformed(reply: Reply) -> None:
    await reply.event('{"choices": [')


async def _not_an_object(reply: Reply) -> None:
    await reply.event("[1, 2]")


async def _not_http(reply: Reply) -> None:
    await reply.raw(b"this is no chunk length\r\n")


async def _error_object(reply: Reply) -> None:
    await reply.event({"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}})
    await reply.done()


async def _error_text(reply: Reply) -> None:
    await reply.event({"object": "error", "message": "EngineCore died", "code": 500})


async def _pause(reply: Reply) -> None:
    await reply.closed.wait()


MIDDLE = {
    "cut": (_cut, "stream.cut", ""),
    "cut after finish_reason": (_cut_after_finish, "stream.cut", ""),
    "malformed JSON": (_malformed, "stream.malformed", '{"choices": ['),
    "JSON but no object": (_not_an_object, "stream.malformed", "[1, 2]"),
    "broken chunked encoding": (_not_http, "stream.malformed", ""),
    "error object": (_error_object, "stream.engine", "EngineCore died"),
    "error in old form": (_error_text, "stream.engine", "EngineCore died"),
    "pause beyond the limit": (_pause, "stream.silent", "0.5"),
}


@pytest.mark.parametrize("case", MIDDLE)
async def test_fault_in_the_middle(serve: Serve, case: str) -> None:
    fault, message_id, detail = MIDDLE[case]

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(role())
        await reply.event(token("a", [1], completion_tokens=1))
        await reply.event(token("b", [2], completion_tokens=2))
        await fault(reply)

    async with serve(script) as server:
        trace = await drive(load_for(server.endpoint, idle_timeout_s=0.5 if fault is _pause else 60))
    assert message_of(trace) == message_id
    assert trace.problem is not None
    assert detail in str(trace.problem.params["detail"])
    assert trace.ended
    assert trace.output_text.startswith("ab")
    assert trace.token_ids is not None
    assert trace.token_ids[:2] == [1, 2]
    assert trace.output_tokens == 2


@pytest.mark.parametrize("fault", ["[1]", '{"error": "boom"}', "{"])
async def test_tokens_in_the_same_block_as_the_fault_are_kept(serve: Serve, fault: str) -> None:
    data = f"data: {json.dumps(token('kept', [1]))}\n\ndata: {fault}\n\n".encode()

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.block(data)

    async with serve(script) as server:
        trace = await drive(load_for(server.endpoint))
    assert message_of(trace) in ("stream.malformed", "stream.engine")
    assert trace.output_text == "kept"


async def _status_500(reply: Reply) -> None:
    await reply.whole("500 Internal Server Error", '{"error": {"message": "no room", "code": 500}}')


async def _status_307(reply: Reply) -> None:
    await reply.whole("307 Temporary Redirect", "")


async def _status_500_chunked(reply: Reply) -> None:
    await reply.begin("500 Internal Server Error", "application/json")
    await reply.block(b'{"error": {"mess')
    await reply.block(b'age": "no room"}}')
    await reply.raw(b"0\r\n\r\n")


async def _status_502_text(reply: Reply) -> None:
    await reply.whole("502 Bad Gateway", "<h1>no room</h1>", "text/html")


async def _status_500_until_close(reply: Reply) -> None:
    # Neither length nor chunks: the body ends with the connection, as HTTP/1.0 servers and proxies do it.
    await reply.raw(b'HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n{"error": {"message": "no room"}}')
    reply.cut()


@pytest.mark.parametrize("script", [_status_500, _status_500_chunked, _status_502_text, _status_500_until_close])
async def test_refused_before_the_stream(serve: Serve, script: Script) -> None:
    async with serve(script) as server:
        trace = await drive(load_for(server.endpoint))
    assert message_of(trace) == "stream.http"
    assert trace.problem is not None
    detail = str(trace.problem.params["detail"])
    assert detail.startswith("HTTP 50")
    assert "no room" in detail
    assert trace.chunks == []


async def test_a_redirect_is_no_stream(serve: Serve) -> None:
    async with serve(_status_307) as server:
        trace = await drive(load_for(server.endpoint))
    assert message_of(trace) == "stream.http"
    assert trace.problem is not None
    assert trace.problem.params["detail"] == "HTTP 307"


async def test_cut_before_anything_came(serve: Serve) -> None:
    async with serve(_cut) as server:
        trace = await drive(load_for(server.endpoint))
    assert message_of(trace) == "stream.cut"


async def test_one_side_fails_and_the_other_goes_on(config: Config) -> None:
    async with FakeServer(_cut) as broken, FakeServer(Steady(tokens=4), uds=config.state / "b") as good:
        load = load_for(broken.endpoint, good.endpoint)
        await drive(load)
    assert [message_of(trace) for trace in load.traces] == ["stream.cut", None]
    assert load.traces[1].counted_tokens == 4


@pytest.mark.parametrize("kind", ["uds", "tcp"])
async def test_connection_refused(config: Config, kind: str) -> None:
    with socket.socket() as unused:
        # Bound and not listening: nobody else takes the port meanwhile.
        unused.bind(("127.0.0.1", 0))
        tcp = Endpoint("m", host="127.0.0.1", port=unused.getsockname()[1])
        trace = await drive(load_for(tcp if kind == "tcp" else Endpoint("m", uds=str(config.state / "none"))))
    assert message_of(trace) == "stream.connect"
    assert trace.ended
    assert trace.chunks == []


@pytest.mark.slow
async def test_pause_of_30_seconds_loses_nothing(config: Config) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("before", [1]))
        await asyncio.sleep(30)
        await reply.event(token(" after", [2], finish="stop"))
        await reply.done()

    async with FakeServer(script) as server:
        trace = await drive(load_for(server.endpoint, idle_timeout_s=config.request_timeout_s))
    assert message_of(trace) is None
    assert trace.output_text == "before after"
    # The pause is part of the figures, not smoothed away.
    assert trace.chunks[1].ms - trace.chunks[0].ms > 29_000


# Stopping


@pytest.mark.parametrize("how", ["stop", "SIGTERM"])
async def test_stop_keeps_what_came_and_closes_the_connection(serve: Serve, how: str) -> None:
    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("kept", [1], completion_tokens=1))
        await reply.closed.wait()

    async with serve(script) as server:
        load = load_for(server.endpoint)
        async for index in load.run():
            if load.traces[index].chunks and not load.traces[index].ended:
                if how == "stop":
                    load.stop()
                else:
                    # From outside, as when the machine shuts down.
                    _drivers(os.getpid())[0].terminate()
        # The engine aborts a request when its connection closes: it has to notice.
        await asyncio.wait_for(server.replies[0].closed.wait(), 10)
    trace = load.traces[0]
    assert message_of(trace) == "stream.stopped"
    assert trace.output_text == "kept"
    assert trace.output_tokens == 1


async def test_stop_pressed_again_and_again(serve: Serve) -> None:
    """Also while the driver is on its way out, and when it has gone."""

    async def script(reply: Reply) -> None:
        await reply.begin()
        await reply.event(token("kept", [1]))
        await reply.closed.wait()

    async with serve(script) as server:
        load = load_for(server.endpoint)
        async for index in load.run():
            if load.traces[index].chunks:
                for _ in range(200):
                    load.stop()
                    await asyncio.sleep(0.001)
        load.stop()
    assert message_of(load.traces[0]) == "stream.stopped"
    assert load.traces[0].output_text == "kept"


async def test_stop_before_the_driver_is_ready(serve: Serve) -> None:
    """Stop pressed while the driver still starts: an end like any other, no crash."""
    async with serve(_pause) as server:
        load = load_for(server.endpoint)
        load.stop()
        trace = await drive(load)
    assert message_of(trace) == "stream.stopped"
    assert trace.ended


async def test_leaving_early_ends_the_driver(config: Config) -> None:
    async with FakeServer(_pause) as server:
        run = load_for(server.endpoint).run()
        await anext(run)
        drivers = _drivers(os.getpid())
        assert len(drivers) == 1
        await run.aclose()
        assert gone(drivers[0].pid)


def _drivers(parent: int) -> list[psutil.Process]:
    children = psutil.Process(parent).children(recursive=True)
    return [child for child in children if "playground.load.driver" in child.cmdline()]


PARENT = """
import asyncio, sys
from playground.domain.spec.workload import ChatMessage, Sampling
from playground.load.driver_client import RaceLoad
from playground.load.endpoint import Endpoint

async def main():
    load = RaceLoad([Endpoint("m", uds=sys.argv[1])], (ChatMessage(role="user", content="x"),), Sampling(), 60)
    async for _ in load.run():
        print("going", flush=True)

asyncio.run(main())
"""


async def test_driver_does_not_survive_its_parent(config: Config) -> None:
    uds = config.state / "e.sock"
    async with FakeServer(Steady(rate=20, tokens=100_000), uds=uds) as server:
        command = [sys.executable, "-c", PARENT, str(uds)]
        parent = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert parent.stdout is not None
        assert await parent.stdout.readline() == b"going\n"
        drivers = _drivers(parent.pid)
        assert len(drivers) == 1
        os.kill(parent.pid, signal.SIGKILL)
        await parent.wait()
        await until(lambda: gone(drivers[0].pid))
        await asyncio.wait_for(server.replies[0].closed.wait(), 10)


def test_it_starts_without_the_settings_models() -> None:
    """A measurement starts one for each turn: importing pydantic doubled the time."""
    code = "import sys, playground.load.driver; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
