"""How many of a set of exactly scored tasks each side gets right, and what that says. Never part of a speed-up."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

from playground.domain.message import Message
from playground.domain.record.evidence import AccuracyEvidence, Task
from playground.domain.record.run import Run

Z = NormalDist().inv_cdf(0.975)
# The level of significance.
ALPHA = 0.05
THOUGHT = "</think>"
BEGINNING = re.compile(r"((the )?answer(:| is:?) |答案?[:是为] ?)?((the|a|an) )?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
WRAPPING = " \t.,;:!?*`'\"()[]。、“”\u2018\u2019《》「」"
BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class SideAccuracy:
    """Of `total` tasks a side answered `answered` and got `right` right. `interval`: Wilson's, 95%, as a share."""

    side: int
    total: int
    answered: int
    right: int
    interval: tuple[float, float] | None

    @property
    def share(self) -> float | None:
        return self.right / self.answered if self.answered else None


@dataclass(frozen=True, slots=True)
class AccuracyDifference:
    """A side against the baseline over the tasks that both answered: `gained` only the side got right, `lost` only
    the baseline. `interval`: Tango's for paired shares, 95%; `p_value`: McNemar's exact test, two-sided."""

    side: int
    baseline: int
    compared: int
    gained: int
    lost: int
    interval: tuple[float, float] | None
    p_value: float

    @property
    def difference(self) -> float | None:
        """The side's share less the baseline's."""
        return (self.gained - self.lost) / self.compared if self.compared else None


@dataclass(frozen=True, slots=True)
class Accuracy:
    sides: tuple[SideAccuracy, ...]
    differences: tuple[AccuracyDifference, ...]


def run_accuracy(run: Run) -> Accuracy | None:
    """The accuracy of each side, and of each other side against the first; None where the check did not run."""
    return None if run.accuracy is None else accuracy_of(run.accuracy)


def accuracy_of(evidence: AccuracyEvidence) -> Accuracy:
    scores = [
        [
            None if answer is None else is_right(task, answer)
            for task, answer in zip(evidence.tasks, answers, strict=True)
        ]
        for answers in evidence.answers
    ]
    sides = tuple(side_accuracy(index, side_scores) for index, side_scores in enumerate(scores))
    return Accuracy(sides, tuple(accuracy_difference(index, scores) for index in range(1, len(scores))))


def side_accuracy(index: int, scores: Sequence[bool | None]) -> SideAccuracy:
    """`scores`: whether each task was answered right; None: not answered."""
    known = [score for score in scores if score is not None]
    interval = wilson(sum(known), len(known)) if known else None
    return SideAccuracy(index, len(scores), len(known), sum(known), interval)


def accuracy_difference(index: int, scores: Sequence[Sequence[bool | None]]) -> AccuracyDifference:
    """The side at `index` against the first. `scores` holds every side's, in the same order of tasks."""
    pairs = [
        (base, side)
        for base, side in zip(scores[0], scores[index], strict=True)
        if base is not None and side is not None
    ]
    gained = sum(side and not base for base, side in pairs)
    lost = sum(base and not side for base, side in pairs)
    interval = tango(gained, lost, len(pairs)) if pairs else None
    return AccuracyDifference(index, 0, len(pairs), gained, lost, interval, mcnemar(gained, lost))


def is_right(task: Task, answer: str) -> bool:
    return normalised(answer) in {normalised(accepted) for accepted in task.accepted}


def normalised(answer: str) -> str:
    """The part of an answer that is compared: its first line that is not blank, after any thoughts, in Unicode's
    NFKC and without case, thousands separators, an introduction ("The answer is", "2 + 2 ="), quotes and
    punctuation around it, a leading article, and repeated spaces."""
    lines = [line for line in answer.rpartition(THOUGHT)[2].splitlines() if line.strip()]
    text = unicodedata.normalize("NFKC", lines[0]).casefold() if lines else ""
    text = " ".join(text.rpartition("=")[2].strip(WRAPPING).split())
    return THOUSANDS.sub("", BEGINNING.sub("", text, count=1).strip(WRAPPING))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95% score interval of a share (Wilson 1927)."""
    interval = _binomial(right, total).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided p-value of McNemar's exact test: under no difference each discordant task is a fair coin."""
    return float(_binomial(gained, gained + lost).pvalue) if gained + lost else 1.0


def _binomial(successes: int, trials: int) -> Any:
    # Imported here: it takes half a second, which only runs with this check need.
    from scipy.stats import binomtest

    return binomtest(successes, trials)


def tango(gained: int, lost: int, total: int) -> tuple[float, float]:
    """Tango's 95% score interval for the difference of paired shares (Tango 1998): every difference that the data
    do not reject. It has a width even where no task is discordant."""

    def rejected(delta: float) -> bool:
        linear = (2 * total - gained + lost) * delta - gained - lost
        constant = -lost * delta * (1 - delta)
        # The most likely share of lost tasks, were this the difference.
        lost_share = (sqrt(max(0.0, linear * linear - 8 * total * constant)) - linear) / (4 * total)
        variance = total * (2 * lost_share + delta * (1 - delta))
        return (gained - lost - total * delta) ** 2 > Z * Z * variance

    observed = (gained - lost) / total
    return _edge(rejected, -1.0, observed), _edge(rejected, 1.0, observed)


def _edge(rejected: Callable[[float], bool], outside: float, inside: float) -> float:
    """The boundary of rejection between `inside` and `outside`, by bisection."""
    if not rejected(outside):
        return outside
    for _ in range(BISECTIONS):
        middle = (outside + inside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


def statements(run: Run) -> list[Message]:
    """How many tasks each side got right, then how each other side differs from the first."""
    accuracy = run_accuracy(run)
    if accuracy is None:
        return []
    labels = [side.label for side in run.sides]
    messages = [_side_statement(side, labels[side.side]) for side in accuracy.sides]
    return messages + [
        difference_statement(difference, labels) for difference in accuracy.differences if difference.compared
    ]


def _side_statement(side: SideAccuracy, label: str) -> Message:
    if not side.answered:
        return Message("accuracy.unknown", {"side": label, "asked": side.total})
    whole = side.answered == side.total
    return Message("accuracy.side" if whole else "accuracy.side_partly", side_params(side, label))


def side_params(side: SideAccuracy, label: str) -> dict[str, object]:
    """The parameters of a sentence about a side that answered; shares are in percent."""
    assert side.interval is not None
    assert side.share is not None
    low, high = side.interval
    return {
        "side": label,
        "right": side.right,
        "answered": side.answered,
        "asked": side.total,
        "share": 100 * side.share,
        "low": 100 * low,
        "high": 100 * high,
    }


def difference_statement(difference: AccuracyDifference, labels: Sequence[str]) -> Message:
    """Which side is more accurate, and how sure that is. The difference covers at least one task."""
    assert difference.interval is not None
    assert difference.difference is not None
    params: dict[str, object] = {
        "side": labels[difference.side],
        "baseline": labels[difference.baseline],
        "gained": difference.gained,
        "lost": difference.lost,
        "points": 100 * difference.difference,
        "low": 100 * difference.interval[0],
        "high": 100 * difference.interval[1],
        "p": difference.p_value,
    }
    if not difference.gained and not difference.lost:
        return Message("accuracy.same", params)
    if difference.p_value >= ALPHA:
        return Message("accuracy.unclear", params)
    return Message("accuracy.better" if difference.gained > difference.lost else "accuracy.worse", params)
