"""Converts the evidence of the checks after the last round to JSON and back."""

from __future__ import annotations

import json

from playground.domain.record.evidence import (
    AccuracyEvidence,
    HarnessEvidence,
    HarnessScores,
    OutputEvidence,
    Repeats,
    Task,
    TopLogprobs,
)

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
