"""The sides' scores in lm-evaluation-harness. They are never part of a speed-up.

Scores of 0 or 1 are reported like those of the built-in tasks. Graded scores are reported by their mean, with the
t interval over the questions, and two sides are compared by their differences question by question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from playground.domain.message import Message
from playground.domain.record.evidence import HarnessScores
from playground.domain.record.run import Run
from playground.domain.stats.intervals import half_width

from .accuracy import accuracy_difference, difference_statement, side_accuracy, side_params


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over `n` questions, with its 95% t interval."""

    value: float
    n: int
    interval: tuple[float, float]

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean | None:
        """None for fewer than two values, which have no spread."""
        n = len(values)
        if n < 2:
            return None
        mean = fmean(values)
        half = half_width(stdev(values), n)
        return cls(mean, n, (mean - half, mean + half))


def graded(scores: HarnessScores) -> bool:
    """Whether a score says more, or something else, than right or wrong."""
    return not scores.higher_is_better or any(
        score not in (None, 0, 1) for side_scores in scores.scores for score in side_scores
    )


def means(scores: HarnessScores) -> list[Mean | None]:
    """Each side's mean score."""
    return [Mean.of([score for score in side_scores if score is not None]) for side_scores in scores.scores]


def mean_difference(scores: HarnessScores, side: int) -> Mean | None:
    """A side's scores less the first side's, over the questions that both have."""
    pairs = zip(scores.scores[0], scores.scores[side], strict=True)
    return Mean.of([score - base for base, score in pairs if base is not None and score is not None])


def harness_statements(run: Run) -> list[Message]:
    """Each side's score for each task and metric, then each other side's difference from the first."""
    evidence = run.harness
    if evidence is None:
        return []
    labels = [side.label for side in run.sides]
    messages = [sentence for scores in evidence.scores for sentence in _statements(scores, labels)]
    return messages + ([] if evidence.problem is None else [evidence.problem])


def _statements(scores: HarnessScores, labels: Sequence[str]) -> Iterator[Message]:
    names: dict[str, object] = {"task": scores.task, "metric": scores.metric}
    if graded(scores):
        for label, mean in zip(labels, means(scores), strict=True):
            if mean is not None:
                yield _mean_statement("harness.mean", mean, {**names, "side": label})
        for index, label in enumerate(labels[1:], 1):
            if (mean := mean_difference(scores, index)) is not None:
                params = {**names, "side": label, "baseline": labels[0]}
                yield _mean_statement("harness.mean_difference", mean, params)
        return
    right = [[None if score is None else score == 1 for score in side_scores] for side_scores in scores.scores]
    for index, label in enumerate(labels):
        side = side_accuracy(index, right[index])
        if side.answered:
            yield Message("harness.side", {**names, **side_params(side, label)})
    for index in range(1, len(labels)):
        difference = accuracy_difference(index, right)
        if difference.compared:
            yield Message("harness.difference", {**names, "statement": difference_statement(difference, labels)})


def _mean_statement(sentence: str, mean: Mean, params: dict[str, object]) -> Message:
    low, high = mean.interval
    return Message(sentence, {**params, "mean": mean.value, "n": mean.n, "low": low, "high": high})
