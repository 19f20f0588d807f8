"""The output check's reading side: which difference is rounding, which is not, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from playground.domain.answers.agreement import (
    Agreement,
    GreedyAgreement,
    SampledAgreement,
    agreements,
    answers_of,
    dtype_of,
    near_tie_nats,
)
from playground.domain.answers.token_comparison import TokenIds
from playground.domain.message import Message
from playground.domain.record.evidence import OutputEvidence, Repeats, TopLogprobs
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.workload import ChatMessage, Workload
from playground.i18n import LOCALES, say_message

# The first prompt's answers differ by a near-tie in bfloat16, the second's for real, the third's unexplained.
BASELINE: list[TokenIds | None] = [[1, 2], [1, 1, 1, 2], [4, 5], [6], None]
SIDE: list[TokenIds | None] = [[1, 3], [1, 1, 1, 3], [4], [6], [6]]
NEAR = (TopLogprobs(0, 0, 1, {2: -0.7, 3: -0.8}), TopLogprobs(1, 0, 1, {3: -0.7, 2: -0.8}))
REAL = (TopLogprobs(0, 1, 3, {2: -0.1, 3: -4.0}), TopLogprobs(1, 1, 3, {3: -0.1, 2: -4.0}))


def greedy(
    prompts: list[int], logprobs: tuple[TopLogprobs, ...], dtypes: tuple[str | None, str | None] = (None, None)
) -> GreedyAgreement:
    """Of these prompts' answers."""
    answers = [[own[prompt] for prompt in prompts] for own in (BASELINE, SIDE)]
    (found,) = agreements(answers, OutputEvidence(logprobs), dtypes, temperature=0)
    assert isinstance(found, GreedyAgreement)
    return found


def test_each_answer_is_compared() -> None:
    found = greedy([0, 1, 2, 3, 4], NEAR + REAL)
    assert (found.side, found.baseline, found.compared, found.identical) == (1, 0, 4, 1)
    assert [difference.kind for difference in found.differences] == ["near-tie", "real difference", "unknown"]
    assert [difference.at.position for difference in found.differences] == [1, 3, 1]
    assert found.differences[1].top == ({2: -0.1, 3: -4.0}, {3: -0.1, 2: -4.0})
    assert found.differences[2].top == (None, None)


@pytest.mark.parametrize(
    ("dtypes", "kind"),
    [
        (("bfloat16", "bfloat16"), "near-tie"),
        (("float32", "bfloat16"), "near-tie"),
        (("bfloat16", "float32"), "near-tie"),
        (("float32", None), "near-tie"),
        (("float16", "float32"), "real difference"),
        (("float32", "float32"), "real difference"),
    ],
)
def test_the_coarser_type_decides(dtypes: tuple[str | None, str | None], kind: str) -> None:
    found = greedy([0], NEAR, dtypes)
    assert found.differences[0].kind == kind
    assert found.near_tie_nats == max(map(near_tie_nats, dtypes))


def test_every_side_is_held_against_the_first() -> None:
    sides: list[list[TokenIds | None]] = [[[1]], [[1]], [[2]]]
    logprobs = (TopLogprobs(0, 0, 0, {1: -0.5, 2: -0.6}), TopLogprobs(2, 0, 0, {2: -0.5, 1: -0.6}))
    found = agreements(sides, OutputEvidence(logprobs), [None] * 3, temperature=0)
    assert [(one.side, one.baseline) for one in found] == [(1, 0), (2, 0)]
    same, other = found
    assert isinstance(same, GreedyAgreement)
    assert isinstance(other, GreedyAgreement)
    assert same.identical == 1
    assert other.count("near-tie") == 1


def said(found: Agreement) -> str:
    """Its message id, and the cause's within it; it can be said in all languages."""
    problem = found.statement()
    assert all(say_message(problem, locale) for locale in LOCALES)
    cause = problem.params.get("cause")
    return f"{problem.message_id} {cause.message_id}" if isinstance(cause, Message) else problem.message_id


@pytest.mark.parametrize(
    ("prompts", "logprobs", "message_ids"),
    [
        ([], (), "outputs.no_ids"),
        ([4], (), "outputs.no_ids"),
        ([3, 4], (), "outputs.identical"),
        ([0, 3], NEAR, "outputs.diverge outputs.near_ties"),
        ([0, 2], NEAR, "outputs.diverge outputs.some_near_ties"),
        ([0, 1, 2], NEAR + REAL, "outputs.diverge outputs.real"),
        ([0, 3], (), "outputs.diverge outputs.unexplained"),
        ([0], NEAR[:1], "outputs.diverge outputs.near_ties"),
        ([0], (TopLogprobs(0, 0, 1, {2: -0.7, 9: -9.0}),), "outputs.diverge outputs.unexplained"),
    ],
)
def test_statement(prompts: list[int], logprobs: tuple[TopLogprobs, ...], message_ids: str) -> None:
    assert said(greedy(prompts, logprobs)) == message_ids


def test_a_statement_gives_the_figures() -> None:
    sentence = say_message(greedy([0, 1, 2, 3], NEAR + REAL).statement())
    assert "1 of 4 answers are identical" in sentence
    assert "3 differ, the earliest after 1 equal tokens" in sentence
    assert "real difference" in sentence.lower()


def repeats(side: int, token: int, count: int = 20) -> Repeats:
    return Repeats(side, ((token,),) * count)


def test_sampled() -> None:
    evidence = OutputEvidence(repeats=(repeats(0, 1), repeats(1, 1), repeats(2, 9)))
    alike, other = agreements([[], [], []], evidence, [None] * 3, temperature=0.7)
    assert isinstance(alike, SampledAgreement)
    assert (alike.side, alike.baseline) == (1, 0)
    assert (said(alike), said(other)) == ("outputs.alike", "outputs.differ")


def test_answers_that_failed_are_no_samples() -> None:
    failed = Repeats(1, (None,) * 17 + ((1,),) * 3)
    (found,) = agreements([[], []], OutputEvidence(repeats=(repeats(0, 1), failed)), [None] * 2, temperature=1)
    assert isinstance(found, SampledAgreement)
    assert found.check.samples == (20, 3)
    assert said(found) == "outputs.too_few"


def test_without_repeats_nothing_is_said_of_samples() -> None:
    """Answers drawn above temperature 0 may differ all they like."""
    assert agreements([[[1]], [[2]]], OutputEvidence(), [None] * 2, temperature=0.1) == []


@pytest.mark.parametrize(
    ("command", "knob", "dtype"),
    [
        ("python -m vllm --dtype float32 --uds '/a b'", None, "float32"),
        ("python -m vllm --dtype float32", "bfloat16", "float32"),
        ("python -m vllm --dtype float32 --dtype float16", None, "float16"),
        ("python -m vllm --dtype auto", None, None),
        ("python -m vllm", None, None),
        ("", "bfloat16", "bfloat16"),
        ("", "auto", None),
    ],
)
def test_dtype(command: str, knob: str | None, dtype: str | None) -> None:
    knobs = Knobs.model_validate({} if knob is None else {"dtype": knob})
    assert dtype_of(SideRecord("A", EngineSettings(target="t", knobs=knobs), command)) == dtype


def asked(text: str, ids: tuple[int, ...] | None = (1, 2), **more: Any) -> RequestTrace:
    conversation = (ChatMessage(role="user", content=text),)
    return RequestTrace(conversation, chunks=[Chunk(1.0, 2, "ab", ids)], **{"ended": True, **more})


def test_answers_go_by_what_was_asked() -> None:
    """An answer cut short must not pass for one that differs, nor one to another prompt."""
    first = [asked("p"), asked("q", (5,)), asked("p", (9,)), asked("r", None), asked("s", ended=False)]
    second = [asked("q", problem=Message("stream.cut")), asked("elsewhere"), asked("p", (3,)), asked("q", (6,))]
    sides = [
        SideRecord(str(number), EngineSettings(target="t"), trials=trials)
        for number, trials in enumerate([[Trial(requests=first)], [Trial(requests=second), Trial(round=1)], []])
    ]
    run = Run("run", "now", "measured", Workload(prompt="x"), sides)
    conversations, answers = answers_of(run)
    assert [conversation[-1].content for conversation in conversations] == ["p", "q", "r", "s"]
    assert answers == [[[1, 2], [5], None, None], [[3], [6], None, None], [None] * 4]
