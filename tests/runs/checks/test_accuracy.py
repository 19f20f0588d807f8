"""Accuracy beside speed: what is asked of the sides, alone and at the end of a measured run."""

from __future__ import annotations

import asyncio
import json
from math import inf
from typing import Any

import pytest
from support.endpoints import ASKED, PLAN, at, attached
from support.fake_server import FakeServer, Reply, Steady
from support.schema import check
from support.waiting import until

from playground.domain.answers.accuracy import accuracy_of
from playground.domain.spec.measurement import Measurement
from playground.domain.stats.rounds import rounds_of
from playground.load.endpoint import Endpoint
from playground.report.documents.comparison import compare_document
from playground.runs.checks import accuracy
from playground.runs.checks.accuracy import EXAMPLES, examine, tasks
from playground.runs.checks.client import AT_ONCE
from playground.runs.host import Host

# What is asked


def question_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"] if "messages" in body else body["prompt"].rsplit("\n\n", 1)[-1])


def knowing(answers: dict[str, str | None]) -> FakeServer:
    """A server that answers these questions, and refuses all others."""

    async def script(reply: Reply) -> None:
        question = question_of(reply.body)
        if question not in answers:
            await reply.whole("500 Internal Server Error", "{}")
            return
        said = answers[question]
        choice = {"message": {"content": said}} if "messages" in reply.body else {"text": said}
        await reply.whole("200 OK", json.dumps({"choices": [choice]}))

    return FakeServer(script)


@pytest.mark.parametrize("api", ["chat", "completions"])
async def test_every_side_gets_every_task(api: Any) -> None:
    first, second, *_ = tasks()
    heard: list[tuple[int, int]] = []
    async with (
        knowing({task.question: task.accepted[0] for task in tasks()}) as good,
        knowing({first.question: "no", second.question: None}) as poor,
    ):
        sides = [Endpoint("m", host="127.0.0.1", port=server.port, api=api) for server in (good, poor)]
        found = await examine(sides, 60, lambda *so_far: heard.append(so_far))
        bodies = [reply.body for reply in good.replies]
    assert found.tasks == tasks()
    assert found.answers[0] == tuple(task.accepted[0] for task in tasks())
    # An answer without text is an answer; a refusal is none.
    assert found.answers[1] == ("no", "", *[None] * (len(tasks()) - 2))
    assert accuracy_of(found).sides[0].share == 1
    assert heard[-1] == (2 * len(tasks()), 2 * len(tasks()))
    assert sorted(map(question_of, bodies)) == sorted(task.question for task in tasks())
    assert {body["temperature"] for body in bodies} == {0}
    assert len({body["cache_salt"] for body in bodies}) == len(bodies)
    assert all(EXAMPLES[0][0] in json.dumps(body) for body in bodies)


@pytest.mark.parametrize("content", ["not JSON", "[]", '{"choices": []}', '{"choices": [{"message": 5}]}'])
async def test_what_is_no_answer_is_none(content: str) -> None:
    async def script(reply: Reply) -> None:
        await reply.whole("200 OK", content)

    async with FakeServer(script) as odd:
        found = await examine([odd.endpoint], 60)
    assert set(found.answers[0]) == {None}


async def test_cancelled_it_drops_its_requests() -> None:
    async def script(reply: Reply) -> None:
        await reply.closed.wait()

    async with FakeServer(script) as slow:
        task = asyncio.create_task(examine([slow.endpoint] * 2, inf))
        await until(lambda: len(slow.replies) == 2 * AT_ONCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: all(reply.closed.is_set() for reply in slow.replies))


# In a run


def also_answers(steady: Steady, say: str, hold: asyncio.Event | None = None) -> FakeServer:
    """Streams as usual; says the same to every whole question, once it may."""

    async def script(reply: Reply) -> None:
        if reply.body.get("stream"):
            await steady(reply)
            return
        if hold is not None:
            await hold.wait()
        await reply.whole("200 OK", json.dumps({"choices": [{"message": {"content": say}}]}))

    return FakeServer(script)


async def test_a_measured_run_asks_after_its_last_round_and_keeps_it(host: Host) -> None:
    async with (
        also_answers(Steady(rate=500), tasks()[0].accepted[0]) as one,
        also_answers(Steady(rate=500), "?") as two,
    ):
        sides = (attached("one", at(one)), attached("two", at(two)))
        comparison = host.comparison(sides, ASKED, PLAN)
        await host.start(comparison, "a test")
        await until(lambda: comparison.finished, within_s=60)
    run = comparison.run
    assert (run.status, run.problem) == ("done", None)
    assert run.accuracy is not None
    first, second = accuracy_of(run.accuracy).sides
    assert (first.answered, second.answered) == (len(tasks()), len(tasks()))
    assert first.right > 0
    assert second.right == 0
    assert host.history.get(run.id) == run
    check("compare", compare_document(run))


async def test_stopped_it_is_left_out(host: Host) -> None:
    never = asyncio.Event()
    async with also_answers(Steady(rate=500), "", hold=never) as one:
        sides = (attached("one", at(one)), attached("two", at(one)))
        comparison = host.comparison(sides, ASKED, PLAN)
        await host.start(comparison, "a test")
        await until(lambda: comparison.live.phase == "scoring", within_s=60)
        comparison.stop()
        await until(lambda: comparison.finished)
        never.set()
    assert (comparison.run.status, comparison.run.accuracy) == ("stopped", None)
    assert len(rounds_of(comparison.run)) == 1


def test_nobody_is_asked_unless_it_is_wished() -> None:
    assert not Measurement().check_accuracy
    assert accuracy.FOLDER.is_dir()
