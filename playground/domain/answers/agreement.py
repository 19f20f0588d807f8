"""Do the sides of a run give the same answers? Derived from the answers and from the output check's evidence."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from playground.domain.message import Message
from playground.domain.record.evidence import OutputEvidence
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Conversation

from .token_comparison import (
    NEAR_TIE_NATS,
    Divergence,
    Kind,
    SampledCheck,
    TokenIds,
    check_greedy,
    check_sampled,
    classify,
)

Top = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a side's answer first differs from the baseline's. Tokens and top logprobs: the baseline's first."""

    at: Divergence
    kind: Kind
    top: tuple[Top | None, Top | None]


@dataclass(frozen=True, slots=True)
class GreedyAgreement:
    """One side's answers against the baseline's at temperature 0. `compared` counts those with token ids."""

    side: int
    baseline: int
    compared: int
    identical: int
    differences: tuple[Difference, ...]
    near_tie_nats: float

    def count(self, kind: Kind) -> int:
        return sum(difference.kind == kind for difference in self.differences)

    def statement(self) -> Message:
        counts: dict[str, object] = {"compared": self.compared, "identical": self.identical}
        if not self.compared:
            return Message("outputs.no_ids")
        if not self.differences:
            return Message("outputs.identical", counts)
        earliest = min(difference.at.position for difference in self.differences)
        details = {"differ": len(self.differences), "after": earliest, "cause": self._cause()}
        return Message("outputs.diverge", counts | details)

    def _cause(self) -> Message:
        near, real, unknown = (self.count(kind) for kind in ("near-tie", "real difference", "unknown"))
        counts: dict[str, object] = {"near": near, "real": real, "unknown": unknown, "nats": self.near_tie_nats}
        if real:
            return Message("outputs.real", counts)
        if not near:
            return Message("outputs.unexplained")
        return Message("outputs.some_near_ties" if unknown else "outputs.near_ties", counts)


@dataclass(frozen=True, slots=True)
class SampledAgreement:
    """One side's answers against the baseline's above temperature 0: the same prompt, many times."""

    side: int
    baseline: int
    check: SampledCheck

    def statement(self) -> Message:
        return self.check.statement()


Agreement = GreedyAgreement | SampledAgreement


def answers_of(run: Run) -> tuple[list[Conversation], list[list[TokenIds | None]]]:
    """The conversations of the first side's first trial, without repeats, and every side's first answer to each.

    An answer is None if it is missing, incomplete, or without token ids.
    """
    trials = [side.trials[0].requests if side.trials else [] for side in run.sides]
    conversations = list(dict.fromkeys(trace.conversation for trace in trials[0]))
    answers: list[dict[Conversation, TokenIds]] = [{} for _ in trials]
    for side_answers, requests in zip(answers, trials, strict=True):
        for trace in requests:
            if trace.ended and trace.problem is None and trace.token_ids is not None:
                side_answers.setdefault(trace.conversation, trace.token_ids)
    return conversations, [
        [side_answers.get(conversation) for conversation in conversations] for side_answers in answers
    ]


def run_agreements(run: Run) -> list[Agreement]:
    """Empty where the check was not requested, or its requests were not answered."""
    if run.outputs is None:
        return []
    dtypes = [dtype_of(side) for side in run.sides]
    return agreements(answers_of(run)[1], run.outputs, dtypes, run.workload.sampling.temperature)


def agreements(
    answers: Sequence[Sequence[TokenIds | None]],
    evidence: OutputEvidence,
    dtypes: Sequence[str | None],
    temperature: float,
) -> list[Agreement]:
    """The agreement of each other side with the first. `answers` come from `answers_of`.

    `dtypes` are the engines' (see `dtype_of`): the coarser one of two decides what a near-tie is. Above
    temperature 0 there is no result before the repeats are complete.
    """
    others = range(1, len(answers))
    if temperature == 0:
        return [_greedy(answers, evidence, dtypes, side) for side in others]
    drawn = {repeats.side: [ids for ids in repeats.answers if ids is not None] for repeats in evidence.repeats}
    return [
        SampledAgreement(side, 0, check_sampled(drawn[0], drawn[side]))
        for side in others
        if {0, side} <= drawn.keys()
    ]


def _greedy(
    answers: Sequence[Sequence[TokenIds | None]], evidence: OutputEvidence, dtypes: Sequence[str | None], side: int
) -> GreedyAgreement:
    nats = max(near_tie_nats(dtypes[0]), near_tie_nats(dtypes[side]))
    tops = {(entry.side, entry.prompt, entry.position): entry.top for entry in evidence.logprobs}

    def explained(divergence: Divergence) -> Difference:
        place = (divergence.pair, divergence.position)
        top = (tops.get((0, *place)), tops.get((side, *place)))
        return Difference(divergence, classify(divergence.tokens, *top, nats), top)

    check = check_greedy(list(zip(answers[0], answers[side], strict=True)))
    differences = tuple(explained(divergence) for divergence in check.divergences)
    return GreedyAgreement(side, 0, check.compared, check.identical, differences, nats)


def near_tie_nats(dtype: str | None) -> float:
    """The threshold for a dtype; an unknown one counts as bfloat16, which most models have."""
    return NEAR_TIE_NATS.get(dtype or "", NEAR_TIE_NATS["bfloat16"])


def dtype_of(side: SideRecord) -> str | None:
    """The type that the settings tell the engine to compute in; None if the engine chooses."""
    words = shlex.split(side.command)
    # In older records a value is a word of its own.
    flags = [value for word, value in pairwise(words) if word == "--dtype"]
    flags += [word.removeprefix("--dtype=") for word in words if word.startswith("--dtype=")]
    knob = side.settings.knobs.dtype if isinstance(side.settings, EngineSettings) else None
    dtype = flags[-1] if flags else knob
    return dtype if dtype in NEAR_TIE_NATS else None
