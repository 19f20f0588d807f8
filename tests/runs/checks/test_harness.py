"""lm-evaluation-harness beside the speed: what its scores say, what is kept of them, what it could not do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from support.endpoints import ASKED, PLAN, at, attached
from support.fake_server import MODEL, FakeServer, Steady
from support.measured_run import measured_run
from support.schema import check
from support.waiting import until

from playground import presets
from playground.domain.answers.harness import Mean, graded, harness_statements, mean_difference, means
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.evidence import HarnessEvidence, HarnessScores
from playground.domain.record.run import Run
from playground.domain.spec.measurement import Harness, Measurement
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.i18n import say_message
from playground.load.endpoint import Endpoint
from playground.load.forward import reachable
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.runs.checks import harness
from playground.runs.host import Host
from playground.runs.sweep import new_sweep
from playground.store import History

RIGHT = HarnessScores("gsm8k", "exact_match, strict", ((1.0, 1.0, 0.0, None), (1.0, 0.0, 0.0, 0.0)))
GRADED = HarnessScores("summary", "rougeL", ((0.5, 0.25, None), (0.75, 0.75, 0.1)))


def scored(*scores: HarnessScores, problem: Message | None = None) -> Run:
    run = measured_run()
    run.harness = HarnessEvidence("0.4.13", scores, problem)
    return run


# What scores say


def test_right_or_wrong_is_told_as_the_built_in_tasks_are() -> None:
    """Of the questions that both have, one was lost and none gained: too few to tell."""
    assert not graded(RIGHT)
    said = [say_message(sentence) for sentence in harness_statements(scored(RIGHT))]
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
    said = [say_message(sentence) for sentence in harness_statements(scored(GRADED))]
    assert said[0].startswith("summary (rougeL), plain: 0.375 on average of 2 questions")
    assert said[2].startswith("summary (rougeL), quick minus plain: +0.375 on average of 2 questions")


def test_one_graded_question_says_nothing() -> None:
    assert harness_statements(scored(HarnessScores("summary", "rougeL", ((0.5,), (0.7,))))) == []


def test_it_never_enters_the_speed_up() -> None:
    plain, run = measured_run(), scored(RIGHT, GRADED)
    assert run_verdicts(run, rounds_of(run)) == run_verdicts(plain, rounds_of(plain))
    added = [item for item in conclusions(run) if item not in conclusions(plain)]
    assert [item.sentence for item in added] == harness_statements(run)
    assert {item.kind for item in added} == {"accuracy"}


def test_the_document_and_the_history_keep_it(tmp_path: Path) -> None:
    run = scored(RIGHT, problem=Message("harness.failed", {"side": "B", "said": "no", "run": "r"}))
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
    assert 'pip install "lm-eval[api]"' in say_message(raised.value)


@pytest.mark.foreign
async def test_tasks_that_it_does_not_know_are_told_before_the_start(lm_eval: None) -> None:
    """A dot makes no file of a name."""
    with pytest.raises(InvalidInput) as raised:
        await harness.check_tasks(Harness(tasks=("gsm8k", "longproc_countdown_0.5k", "no_such_task", "nor_this")))
    assert "does not know: no_such_task, nor_this." in say_message(raised.value)


async def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"unknown_tasks"):
        await harness.check_tasks(Harness(tasks=(f"{tmp_path}/gone.yaml",)))


@pytest.mark.parametrize("task", ["", "--trust_remote_code", "gsm8k,mmlu", "-x", "a\nb", "a;b"])
def test_a_name_is_no_argument(task: str) -> None:
    with pytest.raises(ValueError, match=r"tasks"):
        Harness(tasks=(task,))


def test_what_it_is_told(tmp_path: Path) -> None:
    """A model's name is one value, whatever is in it; a key goes to its own endpoint, on no command line."""
    endpoint = Endpoint.from_url("https://example.com/api", "m,base_url=http://elsewhere", key="SECRET")
    settings = harness._settings(Harness(tasks=("gsm8k", "own.yaml")), endpoint, endpoint.url, 60, tmp_path)
    given = settings["model_args"]
    assert given["model"] == "m,base_url=http://elsewhere"
    assert given["base_url"] == "https://example.com/api/v1/chat/completions"
    assert given["header"] == {"Authorization": "Bearer SECRET"}
    # It runs in another folder.
    assert settings["tasks"] == ["gsm8k", str(Path("own.yaml").absolute())]
    assert settings["limit"] is None


def test_tasks_are_other_people_s_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get no secret, and reach their data sets as this host does."""
    for name in ("PLAYGROUND_AUTH", "PLAYGROUND_ENDPOINT_KEYS", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "SECRET")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "mirror.example")
    given = harness.environment()
    assert "SECRET" not in given.values()
    assert given["NO_PROXY"] == given["no_proxy"] == "mirror.example,127.0.0.1"


# What it leaves


def left(place: Path, *samples: str, **summary: Any) -> harness.SideResults:
    (place / "results_now.json").write_text(json.dumps({"lm_eval_version": "0.4.13", **summary}))
    (place / "samples_two_words_2026-11-30T00-00-00.jsonl").write_text("".join(f"{line}\n" for line in samples))
    return harness._results(place)


def sample(number: int, **scores: object) -> str:
    answer = "a\u2028b\u0085c"
    return json.dumps(
        {"doc_id": number, "resps": [[answer]], "metrics": list(scores), "filter": "none", **scores},
        ensure_ascii=False,
    )


def test_what_it_leaves_is_read(tmp_path: Path) -> None:
    """Also where an answer holds separators of lines; what has no number for a question is left out."""
    found = left(
        tmp_path,
        sample(1, exact_match=1.0, bleu=["a", "b"], wer=0.0),
        sample(0, exact_match=False, bleu=["a", "b"], wer=1.0),
        higher_is_better={"two_words": {"exact_match": True, "wer": False}},
    )
    assert found.scores[("two_words", "exact_match")] == {1: 1.0, 0: 0.0}
    assert found.lower == {("two_words", "wer")}
    exact, wer = harness._side_by_side([found, harness.SideResults()])
    assert (exact.scores, graded(exact)) == (((0.0, 1.0), (None, None)), False)
    # An error rate of 1 is not "right".
    assert graded(wer)


def test_nothing_left_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(harness.HarnessFailed):
        harness._results(tmp_path)


def test_the_reason_is_the_request_s_own() -> None:
    lines = ["x", "API request failed! Status code: 400, Response text: too long", "Traceback", "HTTPError: 400"]
    assert "too long" in harness.HarnessFailed(lines).reason
    # That one was retried, and went well.
    assert harness.HarnessFailed([*lines[:3], "ValueError: no answer"]).reason == "ValueError: no answer"
    assert harness.HarnessFailed(["Tasks not found"]).reason == "Tasks not found"
    assert "SIGILL" in str(harness.HarnessFailed(["loading"], 132).reason)


@pytest.mark.parametrize(
    ("log", "done"),
    [
        ("", (0, 0)),
        ("Requesting API:  50%|##  | 5/10 [00:01<00:01]", (5, 10)),
        # The next group has a bar of its own.
        ("Requesting API: 100%|####| 10/10 [\rRequesting API:   0%| | 0/4 [\rRequesting API: 1/4 [", (11, 14)),
    ],
)
def test_progress_only_grows(log: str, done: tuple[int, int]) -> None:
    assert harness.progress(log) == done


def test_a_sweep_can_t_include_it() -> None:
    preset = presets.load("smollm2-k-1-to-10-ngram")
    assert preset.sweep is not None
    measurement = preset.measurement.model_copy(update={"harness": Harness(tasks=("gsm8k",))})
    with pytest.raises(InvalidInput) as raised:
        new_sweep(preset.sweep, preset.case.model_copy(update={"measurement": measurement}))
    assert raised.value.message_id == "harness.not_in_sweep"


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


@pytest.mark.foreign
async def test_stopped_it_is_gone(host: Host, tmp_path: Path, lm_eval: None) -> None:
    plan = PLAN.model_copy(update={"check_accuracy": False, "harness": without_questions(tmp_path)})
    async with FakeServer(Steady(rate=500)) as server:
        comparison = host.comparison((attached("one", at(server)), attached("two", at(server))), ASKED, plan)
        await host.start(comparison, "a test")
        await until(lambda: bool(harnesses()), within_s=120)
        [process] = harnesses()
        comparison.stop()
        await until(lambda: comparison.finished)
    assert (comparison.run.status, comparison.run.harness) == ("stopped", None)
    assert not process.is_running()


def harnesses() -> list[psutil.Process]:
    """Those that this process started, guards aside."""
    return [process for process in psutil.Process().children(recursive=True) if _is_harness(process)]


def _is_harness(process: psutil.Process) -> bool:
    try:
        return any(word.endswith("/lm_eval") for word in process.cmdline()[1:2])
    except psutil.NoSuchProcess:
        # It has ended since it was listed.
        return False


def without_questions(folder: Path) -> Harness:
    """A task whose file of questions is not there."""
    path = folder / "gone.yaml"
    path.write_text(
        f"task: gone\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: '{folder}/gone.jsonl'}}}}\n"
        "test_split: test\noutput_type: generate_until\ndoc_to_text: q\ndoc_to_target: a\n"
    )
    return Harness(tasks=(str(path),))


@pytest.mark.foreign
async def test_what_it_could_not_do_is_said(host: Host, tmp_path: Path, lm_eval: None) -> None:
    """The run is none the worse for it."""
    plan = PLAN.model_copy(update={"check_accuracy": False, "harness": without_questions(tmp_path)})
    async with FakeServer(Steady(rate=500)) as server:
        comparison = host.comparison((attached("one", at(server)), attached("two", at(server))), ASKED, plan)
        await host.start(comparison, "a test")
        await until(lambda: comparison.finished, within_s=120)
    run = comparison.run
    assert (run.status, run.problem) == ("done", None)
    assert run.harness is not None
    assert run.harness.problem is not None
    said = say_message(run.harness.problem)
    assert "did not finish on one" in said
    assert "gone.jsonl" in said
    assert host.history.get(run.id) == run
