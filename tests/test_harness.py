"""lm-evaluation-harness beside the speed: what its scores say, what is kept of them, what it could not do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from conftest import until
from fake_server import MODEL, FakeServer, Steady
from measured_run import measured_run
from test_accuracy import ASKED, PLAN
from test_attached import at, attached
from test_compare import fake_runtime, host  # noqa: F401
from test_schema import check

from playground import harness
from playground.conclusions import conclusions
from playground.domain.errors import InvalidInput
from playground.domain.harness import Mean, graded, harness_statements, mean_difference, means
from playground.domain.measurement import Harness, Measurement
from playground.domain.records import HarnessEvidence, HarnessScores, Problem, Run
from playground.domain.rounds import rounds_of, run_verdicts
from playground.host import Host
from playground.load.endpoint import Endpoint
from playground.load.forward import reachable
from playground.report import compare_document
from playground.store import History
from playground.text import say_problem

RIGHT = HarnessScores("gsm8k", "exact_match, strict", ((1.0, 1.0, 0.0, None), (1.0, 0.0, 0.0, 0.0)))
GRADED = HarnessScores("summary", "rougeL", ((0.5, 0.25, None), (0.75, 0.75, 0.1)))


def scored(*scores: HarnessScores, problem: Problem | None = None) -> Run:
    run = measured_run()
    run.harness = HarnessEvidence("0.4.13", scores, problem)
    return run


# What scores say


def test_right_or_wrong_is_told_as_the_built_in_tasks_are() -> None:
    """Of the questions that both have, one was lost and none gained: too few to tell."""
    assert not graded(RIGHT)
    said = [say_problem(sentence) for sentence in harness_statements(scored(RIGHT))]
    assert said[0].startswith("gsm8k (exact_match, strict), plain: 2 of 3 right, 67%")
    assert said[1].startswith("gsm8k (exact_match, strict), quick: 1 of 4 right, 25%")
    assert "No clear difference" in said[2]
    assert "-33.3 percentage points" in said[2]


def test_graded_scores_have_means_and_their_differences() -> None:
    """By hand: the differences are 0.25 and 0.5; t(1) = 12.706, their spread / sqrt(2) = 0.125."""
    assert graded(GRADED)
    assert mean_difference(GRADED, 1) == Mean(
        0.375,
        2,
        (pytest.approx(0.375 - 12.706 * 0.125, abs=1e-3), pytest.approx(0.375 + 12.706 * 0.125, abs=1e-3)),
    )
    found = means(GRADED)
    assert [mean and mean.n for mean in found] == [2, 3]
    said = [say_problem(sentence) for sentence in harness_statements(scored(GRADED))]
    assert said[0].startswith("summary (rougeL), plain: 0.375 on average of 2 questions")
    assert said[2].startswith("summary (rougeL), quick less plain: +0.375 on average of 2 questions")


def test_one_graded_question_says_nothing() -> None:
    assert harness_statements(scored(HarnessScores("summary", "rougeL", ((0.5,), (0.7,))))) == []


def test_it_never_enters_the_speed_up() -> None:
    plain, run = measured_run(), scored(RIGHT, GRADED)
    assert run_verdicts(run, rounds_of(run)) == run_verdicts(plain, rounds_of(plain))
    told = conclusions(run)
    assert [sentence for sentence in told if sentence not in conclusions(plain)] == harness_statements(run)


def test_the_document_and_the_history_keep_it(tmp_path: Path) -> None:
    run = scored(RIGHT, problem=Problem("harness.failed", {"side": "B", "said": "no", "run": "r"}))
    run.measurement = Measurement(harness=Harness(tasks=("gsm8k",), limit=None))
    document = compare_document(run)
    check("compare", document)
    assert document["measurement"]["harness"] == {"tasks": ["gsm8k"]}
    assert document["harness"]["scores"][0]["scores"] == {"plain": RIGHT.scores[0], "quick": RIGHT.scores[1]}
    history = History(tmp_path / "history.db")
    history.begin(run)
    history.finish(run)
    kept = history.get(run.id)
    assert kept is not None
    assert (kept.harness, kept.measurement) == (run.harness, run.measurement)


# What is refused


def test_it_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    harness.check(None)
    monkeypatch.setattr(harness, "installed", lambda: None)
    with pytest.raises(InvalidInput) as raised:
        harness.check(Harness(tasks=("gsm8k",)))
    assert 'pip install "lm-eval[api]"' in say_problem(raised.value)


@pytest.mark.parametrize("task", ["", "--trust_remote_code", "gsm8k,mmlu", "-x", "a\nb", "a;b"])
def test_a_name_is_no_argument(task: str) -> None:
    with pytest.raises(ValueError, match=r"tasks"):
        Harness(tasks=(task,))


def test_a_model_s_name_brings_no_arguments() -> None:
    """Else it could send the harness to another server."""
    endpoint = Endpoint("m,base_url=http://elsewhere", host="127.0.0.1", port=1)
    command = harness._command(Harness(tasks=("gsm8k",), limit=None), endpoint, endpoint.url, 60, "/tmp/out")
    given = json.loads(command[command.index("--model_args") + 1])
    assert given["model"] == "m,base_url=http://elsewhere"
    assert given["base_url"] == "http://127.0.0.1:1/v1/chat/completions"
    assert "--limit" not in command


# Itself


async def test_an_engine_on_a_socket_is_reached_over_tcp_meanwhile(tmp_path: Path) -> None:
    async with FakeServer(Steady(rate=500), uds=tmp_path / "s") as server:
        async with reachable(server.endpoint) as url, httpx.AsyncClient(trust_env=False) as client:
            answers = await asyncio.gather(*(client.get(f"{url}/models") for _ in range(5)))
            assert {answer.json()["data"][0]["id"] for answer in answers} == {MODEL}
        async with httpx.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{url}/models")


async def test_one_on_tcp_is_reached_where_it_is() -> None:
    endpoint = Endpoint.from_url("https://example.com/api", "m")
    async with reachable(endpoint) as url:
        assert url == endpoint.url


async def test_what_it_could_not_do_is_said(host: Host, lm_eval: None) -> None:  # noqa: F811
    """The run is none the worse for it."""
    plan = PLAN.model_copy(update={"check_accuracy": False, "harness": Harness(tasks=("no_such_task",))})
    async with FakeServer(Steady(rate=500)) as server:
        comparison = host.comparison((attached("one", at(server)), attached("two", at(server))), ASKED, plan)
        await host.start(comparison, "a test")
        await until(lambda: comparison.finished, within_s=120)
    run = comparison.run
    assert (run.status, run.problem) == ("done", None)
    assert run.harness is not None
    assert run.harness.problem is not None
    said = say_problem(run.harness.problem)
    assert "did not finish on one" in said
    assert "no_such_task" in said
    assert host.history.get(run.id) == run
