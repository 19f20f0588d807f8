"""What the output check asks for of servers that don't know how. See real_engines for those that do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.fake_server import FakeServer, Reply
from support.waiting import until

from playground.domain.answers.agreement import GreedyAgreement, agreements
from playground.domain.record.evidence import OutputEvidence, Repeats
from playground.domain.spec.workload import ChatMessage, Sampling
from playground.load.endpoint import Capabilities
from playground.runs.checks.answers import LOOKED_INTO, REPEATED_TOKENS, REPEATS, examine
from playground.runs.checks.client import AT_ONCE

TIMEOUT_S = 120
GREEDY = Sampling(max_tokens=40, ignore_eos=True)
HELLO = ((ChatMessage(role="user", content="Hello"),),)


# What a real engine won't do


def chat(ids: list[int] | None = None, prompt: list[int] | None = None) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "x"}, "token_ids": ids}], "prompt_token_ids": prompt}


def completion(top: dict[str, float], chosen: str) -> dict[str, Any]:
    return {"choices": [{"text": "x", "logprobs": {"tokens": [chosen], "top_logprobs": [top]}}]}


GOOD_TOP = {"token_id:1": -0.5, "token_id:2": -1.0}


def server(to_chat: object, to_completion: object = None, status: str = "200 OK") -> FakeServer:
    async def script(reply: Reply) -> None:
        content = to_chat if "messages" in reply.body else to_completion
        await reply.whole(status, content if isinstance(content, str) else json.dumps(content))

    return FakeServer(script)


async def test_the_context_is_prompt_and_common_beginning() -> None:
    good = server(chat([5], [7, 8, 9]), completion(GOOD_TOP, "token_id:1"))
    async with good, server({}) as silent:
        sides = [good.endpoint, silent.endpoint]
        evidence = await examine(sides, HELLO, GREEDY, [[[5, 6, 1]], [[5, 6, 2]]], TIMEOUT_S)
    (found,) = evidence.logprobs
    assert (found.side, found.prompt, found.position) == (0, 0, 2)
    assert found.top == {1: -0.5, 2: -1.0}
    asked = good.replies[-1].body
    assert asked["prompt"] == [7, 8, 9, 5, 6]
    assert (asked["max_tokens"], asked["temperature"]) == (1, 0)
    assert asked["cache_salt"] != good.replies[0].body["cache_salt"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: server("not JSON"),
        lambda: server([]),
        lambda: server({"choices": []}),
        lambda: server(chat([5])),
        lambda: server(chat([5], [7]), {"choices": [{"text": "x"}]}),
        lambda: server(chat([5], [7]), completion({}, "")),
        lambda: server(chat([5], [7]), completion({}, "token_id:1")),
        # Tokens as text, not as ids.
        lambda: server(chat([5], [7]), completion({"1": -0.5, "2": -1.0}, "1")),
        # The server's own penalty keeps the most likely token out.
        lambda: server(chat([5], [7]), completion(GOOD_TOP, "token_id:2")),
        lambda: server(chat([5], [7]), completion(GOOD_TOP, "token_id:1"), status="400 Bad Request"),
    ],
)
async def test_what_is_not_given_is_unknown(make: Callable[[], FakeServer]) -> None:
    async with make() as odd:
        sides = [odd.endpoint] * 2
        answers = [[[1]], [[2]]]
        evidence = await examine(sides, HELLO, GREEDY, answers, TIMEOUT_S)
        assert odd.replies
    assert evidence == OutputEvidence()
    (found,) = agreements(answers, evidence, [None, None], temperature=0)
    assert isinstance(found, GreedyAgreement)
    assert found.count("unknown") == 1


async def test_a_server_that_is_gone_is_unknown() -> None:
    async with server({}) as good:
        pass
    drawn = GREEDY.model_copy(update={"temperature": 1.0})
    evidence = await examine([good.endpoint] * 2, HELLO, drawn, [[None]] * 2, TIMEOUT_S)
    assert evidence.repeats == tuple(Repeats(side, (None,) * REPEATS) for side in (0, 1))


async def test_nothing_is_asked_in_vain() -> None:
    """Not of an endpoint without token ids, nor where a penalty makes logprobs say nothing."""
    async with server(chat([5], [7])) as good:
        plain = good.endpoint.knowing(Capabilities(token_ids=False))
        drawn = GREEDY.model_copy(update={"temperature": 1.0})
        assert (await examine([plain] * 2, HELLO, drawn, [[None]] * 2, TIMEOUT_S)).repeats[0].answers[0] is None
        for penalty in ({"repetition_penalty": 1.1}, {"presence_penalty": 0.1}, {"frequency_penalty": -1.0}):
            penalised = GREEDY.model_copy(update=penalty)
            found = await examine([good.endpoint] * 2, HELLO, penalised, [[[1]], [[2]]], TIMEOUT_S)
            assert found == OutputEvidence()
        assert not good.replies


async def test_so_many_are_looked_into() -> None:
    many = HELLO * (LOOKED_INTO + 3)
    answers = [[[side]] * len(many) for side in (1, 2)]
    async with server(chat([5], [7]), completion(GOOD_TOP, "token_id:1")) as good:
        evidence = await examine([good.endpoint] * 2, many, GREEDY, answers, TIMEOUT_S)
    (found,) = agreements(answers, evidence, ["float32"] * 2, temperature=0)
    assert isinstance(found, GreedyAgreement)
    assert (found.count("real difference"), found.count("unknown")) == (LOOKED_INTO, 3)


@pytest.mark.parametrize("seed", [None, 5, 2**63 - 1])
async def test_no_seed_is_used_twice_and_few_are_asked_at_once(seed: int | None) -> None:
    under_way = peak = 0

    async def script(reply: Reply) -> None:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        await reply.whole("200 OK", json.dumps(chat([reply.body["seed"] % 1000, 2])))

    long = Sampling(temperature=0.7, max_tokens=1000, seed=seed)
    async with FakeServer(script) as a, FakeServer(script) as b:
        evidence = await examine([a.endpoint, b.endpoint], HELLO, long, [[None]] * 2, TIMEOUT_S)
        bodies = [reply.body for reply in (*a.replies, *b.replies)]
    seeds = {body["seed"] for body in bodies}
    assert len(seeds) == 2 * REPEATS
    assert max(seeds) < 2**63
    assert 1 < peak <= 2 * AT_ONCE
    assert all(body["max_tokens"] == REPEATED_TOKENS and not body["stream"] for body in bodies)
    # In the order of their seeds, whichever came first.
    first = [ids[0] for own in evidence.repeats for ids in own.answers if ids is not None]
    assert first == [seed % 1000 for seed in sorted(seeds)]


async def test_cancelled_it_drops_its_requests() -> None:
    async def script(reply: Reply) -> None:
        await reply.closed.wait()

    drawn = Sampling(temperature=1)
    async with FakeServer(script) as slow:
        task = asyncio.create_task(examine([slow.endpoint] * 2, HELLO, drawn, [[None]] * 2, TIMEOUT_S))
        await until(lambda: len(slow.replies) == 2 * AT_ONCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: all(reply.closed.is_set() for reply in slow.replies))
        assert len(slow.replies) == 2 * AT_ONCE
