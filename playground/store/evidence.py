"""Converts the evidence of the checks after the last round to JSON and back."""

from __future__ import annotations

import json
from typing import Any

from playground.domain.message import Message
from playground.domain.record.evidence import (
    AccuracyEvidence,
    HarnessEvidence,
    HarnessScores,
    OutputEvidence,
    Repeats,
    Task,
    TopLogprobs,
)
from playground.domain.record.figures import SideFigures
from playground.domain.record.prompts import PromptsRead, Remark
from playground.domain.record.reported import Reported

from .foreign.runs import reported_of
from .messages import message_of, message_text


def outputs_row(evidence: OutputEvidence) -> str:
    """Logprobs as [side, prompt, position, [[token, logprob], ...]], repeats as [side, [token ids, ...]]."""
    return json.dumps(
        {
            "logprobs": [[o.side, o.prompt, o.position, list(o.top.items())] for o in evidence.logprobs],
            "repeats": [[o.side, o.answers] for o in evidence.repeats],
        }
    )


def outputs_of(text: str) -> OutputEvidence:
    values = json.loads(text)
    return OutputEvidence(
        tuple(TopLogprobs(side, prompt, at, dict(top)) for side, prompt, at, top in values["logprobs"]),
        tuple(
            Repeats(side, tuple(None if ids is None else tuple(ids) for ids in answers))
            for side, answers in values["repeats"]
        ),
    )


def accuracy_row(evidence: AccuracyEvidence) -> str:
    """Tasks as [question, [accepted, ...]], and each side's answers in the tasks' order."""
    tasks = [[task.question, task.accepted] for task in evidence.tasks]
    return json.dumps({"tasks": tasks, "answers": evidence.answers}, ensure_ascii=False)


def accuracy_of(text: str) -> AccuracyEvidence:
    values = json.loads(text)
    return AccuracyEvidence(
        tuple(Task(question, tuple(accepted)) for question, accepted in values["tasks"]),
        tuple(tuple(answers) for answers in values["answers"]),
    )


def harness_row(evidence: HarnessEvidence) -> str:
    """Scores as [task, metric, [each side's score of each question, ...], whether higher is better]."""
    scores = [[score.task, score.metric, score.scores, score.higher_is_better] for score in evidence.scores]
    return json.dumps(
        {"version": evidence.version, "scores": scores, "problem": message_text(evidence.problem)},
        ensure_ascii=False,
    )


def harness_of(text: str) -> HarnessEvidence:
    values = json.loads(text)
    scores = (
        HarnessScores(task, metric, tuple(map(tuple, sides)), higher)
        for task, metric, sides, higher in values["scores"]
    )
    return HarnessEvidence(values["version"], tuple(scores), message_of(values["problem"]))


def prompts_row(evidence: PromptsRead) -> str:
    """Remarks as [why, count, [first places]]."""

    def remarks(of: tuple[Remark, ...]) -> list[object]:
        return [[message_text(r.why), r.count, [message_text(place) for place in r.first]] for r in of]

    return json.dumps(
        {
            "read": evidence.read,
            "sampled": evidence.sampled,
            "seed": evidence.seed,
            "skipped": remarks(evidence.skipped),
            "changed": remarks(evidence.changed),
        },
        ensure_ascii=False,
    )


def prompts_of(text: str) -> PromptsRead:
    values = json.loads(text)

    def remarks(of: list[list[Any]]) -> tuple[Remark, ...]:
        return tuple(
            Remark(required(why), count, tuple(required(place) for place in first)) for why, count, first in of
        )

    def required(message: str) -> Message:
        parsed = message_of(message)
        assert parsed is not None
        return parsed

    return PromptsRead(
        values["read"], values["sampled"], values["seed"], remarks(values["skipped"]), remarks(values["changed"])
    )


def reported_row(reported: Reported) -> str:
    return json.dumps({"tool": reported.tool, "document": reported.document}, ensure_ascii=False)


def reported_in(text: str) -> tuple[Reported, SideFigures]:
    values = json.loads(text)
    reported, result = reported_of(values["tool"], values["document"])
    return reported, result.figures
