"""What the output check asks for: of two real engines with a real small model, and of servers that don't know how.

Starting the two takes about a minute on two cores.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from conftest import until
from fake_server import FakeServer, Reply
from real import raced, real_host

from playground import presets, prompts
from playground.answers import LOOKED_INTO, REPEATED_TOKENS, REPEATS, examine
from playground.asking import AT_ONCE, OnProgress
from playground.domain.agreement import GreedyAgreement, SampledAgreement, agreements, answers_of, dtype_of
from playground.domain.records import OutputEvidence, Repeats, Run, SideRecord, Trial
from playground.domain.settings import EngineSettings, Knobs
from playground.domain.workload import ConcurrencyProfile, Message, Sampling, Workload
from playground.engine.command import SERVED_NAME
from playground.load.client import MeasuredLoad
from playground.load.endpoint import Capabilities, Endpoint

TIMEOUT_S = 120
GREEDY = Sampling(max_tokens=40, ignore_eos=True)
CHATS = prompts.load("chat")[:4]
HELLO = ((Message(role="user", content="Hello"),),)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sides() -> AsyncIterator[list[Endpoint]]:
    """Speculation off, and n-gram; both in float32."""
    preset = presets.load("smollm2-ngram")
    async with real_host() as host:
        comparison = await raced(host, preset.sides, preset.workload)
        assert comparison.run.status == "done", comparison.run.problem
        yield [Endpoint(SERVED_NAME, uds=str(engine.uds)) for engine in host.pool.engines]


async def answered(side: Endpoint, sampling: Sampling) -> SideRecord:
    profile = ConcurrencyProfile(requests=len(CHATS))
    load = MeasuredLoad(side, CHATS, sampling, profile, seed=0, idle_timeout_s=TIMEOUT_S)
    async for _ in load.run():
        pass
    settings = EngineSettings(target="SmolLM2", knobs=Knobs(dtype="float32"))
    return SideRecord("a side", settings, trials=[Trial(requests=load.in_order)])


async def examined(
    sides: list[Endpoint], samplings: list[Sampling], on_progress: OnProgress = lambda *_: None
) -> GreedyAgreement:
    """Each side answers with its own sampling; then both are asked as if it had been the first's."""
    records = [await answered(side, sampling) for side, sampling in zip(sides, samplings, strict=True)]
    conversations, answers = answers_of(Run("run", "now", "measured", Workload(prompt="x"), records))
    assert len(conversations) == len(CHATS)
    evidence = await examine(sides, conversations, samplings[0], answers, TIMEOUT_S, on_progress)
    (found,) = agreements(answers, evidence, [dtype_of(record) for record in records], temperature=0)
    assert isinstance(found, GreedyAgreement)
    assert found.compared == len(CHATS)
    return found


@pytest.mark.asyncio(loop_scope="module")
async def test_speculation_changes_no_greedy_answer(sides: list[Endpoint]) -> None:
    found = await examined(sides, [GREEDY, GREEDY])
    assert found.identical == len(CHATS)


@pytest.mark.asyncio(loop_scope="module")
async def test_logprobs_where_answers_part(sides: list[Endpoint]) -> None:
    """One side answers under a penalty, as another model might: logprobs tell that this is no rounding."""
    penalty = GREEDY.model_copy(update={"repetition_penalty": 1.3})
    heard: list[tuple[int, int]] = []
    found = await examined(sides, [GREEDY, penalty], lambda *so_far: heard.append(so_far))
    assert found.differences
    for difference in found.differences:
        baseline, side = difference.top
        chosen, other = difference.at.tokens
        assert baseline is not None
        assert side is not None
        # The context was right: the next token is the one that the baseline's answer has there.
        assert max(baseline, key=lambda token: baseline[token]) == chosen
        # And the same on both sides, which run one model.
        assert side[chosen] == pytest.approx(baseline[chosen], abs=1e-3)
        assert other is not None
        assert side.get(other, min(side.values())) < side[chosen]
    assert found.count("real difference") > 0
    questions = 2 * len(found.differences)
    assert sorted(heard) == [(done, questions) for done in range(questions + 1)]


@pytest.mark.asyncio(loop_scope="module")
async def test_one_prompt_many_times(sides: list[Endpoint]) -> None:
    drawn = Sampling(max_tokens=24, temperature=1)
    conversations = [prompt.conversation for prompt in CHATS]
    evidence = await examine(sides, conversations, drawn, [[None] * len(CHATS)] * 2, TIMEOUT_S)
    assert [own.side for own in evidence.repeats] == [0, 1]
    for own in evidence.repeats:
        assert len(own.answers) == REPEATS
        assert None not in own.answers
        # Each with a seed of its own.
        assert len(set(own.answers)) > REPEATS / 2
    (found,) = agreements([[], []], evidence, [None, None], temperature=1)
    assert isinstance(found, SampledAgreement)
    assert found.check.samples == (REPEATS, REPEATS)
    assert found.check.p_value is not None


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
