"""What a `compare` document says of the answers: do the sides agree, and how often are they right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.answers.accuracy import is_right, run_accuracy
from playground.domain.answers.agreement import Agreement, Difference, GreedyAgreement, SampledAgreement, Top
from playground.domain.answers.harness import harness_statements
from playground.domain.answers.token_comparison import Kind
from playground.domain.record.figures import Count, NotNegative, Share
from playground.domain.record.run import Run
from playground.i18n import Locale, say_message

from .parts import MessageDocument, message_document

Signed = Annotated[float, Field(ge=-1, le=1)]
ShareInterval = tuple[Signed, Signed]


class DivergenceDocument(TypedDict):
    prompt: Count
    """Which of the prompts, from 0."""
    position: Count
    """The first token that differs, from 0."""
    tokens: tuple[Count | None, Count | None]
    """The baseline's and the side's token ids there; null: the answer had ended."""
    kind: Kind
    """near-tie: rounding alone can swap the two. unknown: not examined, or no usable logprobs."""
    top: Annotated[list[list[tuple[Count, float]] | None], Field(min_length=2, max_length=2)]
    """The baseline's and the side's [token id, logprob in nats] there, the most likely first; null: unknown."""


class SampledDocument(TypedDict):
    p_value: Share | None
    """Of a permutation test that both sides draw from one distribution; null: too few answers."""
    samples: tuple[Count, Count]
    """Answers of the baseline and of the side, all to the first prompt, each with a seed of its own."""
    prefix_within: tuple[NotNegative | None, NotNegative | None]
    """Mean tokens until two answers of one side differ."""
    prefix_between: NotNegative | None
    """Mean tokens until an answer of the one side and one of the other differ."""
    distances: Sequence[NotNegative]
    """Total variation distance between both sides' token frequencies at each position."""
    detectable_shift: Share | None
    """The change in one token's share at one position that is found 4 times in 5; null: not even 1."""


class AgreementDocument(TypedDict):
    side: str
    """Its label."""
    baseline: str
    """The label of the side it is compared with."""
    compared: Count | None
    """Prompts whose answers both sides gave in token ids; null above temperature 0."""
    identical: Count | None
    """How many of these have equal token ids; null above temperature 0."""
    near_tie_nats: Annotated[float, Field(gt=0)] | None
    """Two tokens closer than this are a near-tie: by the coarser of the two engines' number types."""
    divergences: list[DivergenceDocument]
    sampled: SampledDocument | None
    """null at temperature 0."""
    statement: MessageDocument


class SideAccuracyDocument(TypedDict):
    side: str
    asked: Count
    answered: Count
    right: Count
    share: Share | None
    """right / answered"""
    interval: ShareInterval | None
    """Wilson's, 95%."""


class AccuracyDifferenceDocument(TypedDict):
    side: str
    baseline: str
    compared: Count
    gained: Count
    """Tasks that only this side got right."""
    lost: Count
    """Tasks that only the baseline got right."""
    difference: Signed | None
    """The side's share less the baseline's."""
    interval: ShareInterval | None
    """Tango's for paired shares, 95%."""
    p_value: Share
    """McNemar's exact test, two-sided."""


class TaskDocument(TypedDict):
    question: str
    accepted: Annotated[Sequence[str], Field(min_length=1)]
    answers: list[str | None]
    """In the order of the sides; null: none came."""
    right: list[bool | None]


class AccuracyDocument(TypedDict):
    """Built-in tasks, asked after the last round. Independent of all speeds."""

    sides: list[SideAccuracyDocument]
    differences: list[AccuracyDifferenceDocument]
    """Each other side against the first, over the tasks that both answered."""
    tasks: list[TaskDocument]


class HarnessScoresDocument(TypedDict):
    task: str
    metric: str
    """With the filter after a comma, if it has one."""
    higher_is_better: bool
    scores: dict[str, Sequence[float | None]]
    """Side -> its score of each question, in the same order on all sides; null: none."""


class HarnessResultDocument(TypedDict):
    version: str
    """lm-evaluation-harness's own."""
    problem: MessageDocument | None
    """Why there are no scores."""
    scores: list[HarnessScoresDocument]
    statements: list[str]
    """The conclusions, in the document's language."""


def outputs_document(
    agreements: Sequence[Agreement], labels: Sequence[str], locale: Locale = "en"
) -> list[AgreementDocument]:
    """What a `compare` document says under `outputs`: nothing where nothing could be compared."""
    return [_agreement(agreement, labels, locale) for agreement in agreements]


def _agreement(agreement: Agreement, labels: Sequence[str], locale: Locale) -> AgreementDocument:
    greedy = agreement if isinstance(agreement, GreedyAgreement) else None
    return {
        "side": labels[agreement.side],
        "baseline": labels[agreement.baseline],
        "compared": greedy.compared if greedy else None,
        "identical": greedy.identical if greedy else None,
        "near_tie_nats": greedy.near_tie_nats if greedy else None,
        "divergences": [_divergence(difference) for difference in greedy.differences] if greedy else [],
        "sampled": _sampled(agreement) if isinstance(agreement, SampledAgreement) else None,
        "statement": message_document(agreement.statement(), locale),
    }


def _sampled(agreement: SampledAgreement) -> SampledDocument:
    check = agreement.check
    return {
        "p_value": check.p_value,
        "samples": check.samples,
        "prefix_within": check.prefix_within,
        "prefix_between": check.prefix_between,
        "distances": check.distances,
        "detectable_shift": check.detectable_shift,
    }


def _divergence(difference: Difference) -> DivergenceDocument:
    return {
        "prompt": difference.at.pair,
        "position": difference.at.position,
        "tokens": difference.at.tokens,
        "kind": difference.kind,
        "top": [_likeliest_first(top) for top in difference.top],
    }


def _likeliest_first(top: Top | None) -> list[tuple[int, float]] | None:
    return None if top is None else sorted(top.items(), key=lambda item: -item[1])


def accuracy_document(run: Run) -> AccuracyDocument | None:
    accuracy, evidence = run_accuracy(run), run.accuracy
    if accuracy is None or evidence is None:
        return None
    labels = [side.label for side in run.sides]
    return {
        "sides": [
            {
                "side": labels[side.side],
                "asked": side.total,
                "answered": side.answered,
                "right": side.right,
                "interval": side.interval,
                "share": side.share,
            }
            for side in accuracy.sides
        ],
        "differences": [
            {
                "side": labels[difference.side],
                "baseline": labels[difference.baseline],
                "compared": difference.compared,
                "gained": difference.gained,
                "lost": difference.lost,
                "interval": difference.interval,
                "p_value": difference.p_value,
                "difference": difference.difference,
            }
            for difference in accuracy.differences
        ],
        "tasks": [
            {
                "question": task.question,
                "accepted": task.accepted,
                "answers": answers,
                "right": [None if answer is None else is_right(task, answer) for answer in answers],
            }
            for task, *answers in zip(evidence.tasks, *evidence.answers, strict=True)
        ],
    }


def harness_document(run: Run, locale: Locale) -> HarnessResultDocument | None:
    evidence, labels = run.harness, [side.label for side in run.sides]
    if evidence is None:
        return None
    return {
        "version": evidence.version,
        "problem": message_document(evidence.problem, locale),
        "scores": [
            {
                "task": scores.task,
                "metric": scores.metric,
                "higher_is_better": scores.higher_is_better,
                "scores": dict(zip(labels, scores.scores, strict=True)),
            }
            for scores in evidence.scores
        ],
        "statements": [say_message(sentence, locale) for sentence in harness_statements(run)],
    }
