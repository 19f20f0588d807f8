"""What the checks asked the sides after the last round, and the answers."""

from __future__ import annotations

from dataclasses import dataclass

from playground.domain.message import Message


@dataclass(frozen=True, slots=True)
class TopLogprobs:
    """One side's top logprobs at one position of its answer to one prompt: token id -> natural log."""

    side: int
    prompt: int
    position: int
    top: dict[int, float]


@dataclass(frozen=True, slots=True)
class Repeats:
    """One side's answers to one prompt above temperature 0, as token ids; None where one failed or had no ids."""

    side: int
    answers: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class OutputEvidence:
    """What the output check asked for after the last round, beside the answers of the rounds themselves."""

    logprobs: tuple[TopLogprobs, ...] = ()
    repeats: tuple[Repeats, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A question with an exact answer; any of `accepted` is right."""

    question: str
    accepted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccuracyEvidence:
    """What the accuracy check asked after the last round, and each side's answer to each task; None: no answer."""

    tasks: tuple[Task, ...]
    answers: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class HarnessScores:
    """One metric of one task of lm-evaluation-harness: each side's score of each question, all in the same order;
    None: it has none."""

    task: str
    metric: str
    scores: tuple[tuple[float | None, ...], ...]
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class HarnessEvidence:
    """The scores of lm-evaluation-harness after the last round, and its version. `problem`: why there are none."""

    version: str
    scores: tuple[HarnessScores, ...] = ()
    problem: Message | None = None
