"""Derives figures from traces and counter differences. Unknown is None, never 0.

Definitions follow the field's terms (TTFT, TPOT, ITL, E2EL, output throughput, acceptance); a chunk is never
taken for a token, nor for an engine step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise, zip_longest
from operator import add
from statistics import fmean

from playground.domain.spec.measurement import Measurement
from playground.domain.spec.workload import Limits, Objective

from .counters import Counters
from .expense import cost_per_million, energy_per_token_j
from .figures import Distribution, SideFigures
from .run import SideRecord, Trial
from .traces import RequestTrace, duration_ms, output_tokens


@dataclass(frozen=True, slots=True)
class RequestFigures:
    """One request's figures, in milliseconds. `itl_ms`: for each chunk after the first the time that each of its
    tokens took, and how many there are. `approximate` marks a TPOT taken from the final usage alone."""

    ttft_ms: float | None
    tpot_ms: float | None
    e2el_ms: float | None
    itl_ms: tuple[tuple[float, int], ...] | None
    chunk_gap_ms: tuple[float, ...]
    output_tokens: int | None
    approximate: bool = False

    @property
    def decode_tokens_per_s(self) -> float | None:
        return 1000 / self.tpot_ms if self.tpot_ms else None


def request_figures(trace: RequestTrace) -> RequestFigures:
    """TTFT = first token-bearing chunk; TPOT = (t_last - t_first) / tokens after the first such chunk."""
    chunks = trace.chunks
    if not chunks:
        return RequestFigures(None, None, None, None, (), trace.output_tokens)
    first, last = chunks[0], chunks[-1]
    gaps = tuple(b.ms - a.ms for a, b in pairwise(chunks))
    counts = [chunk.tokens for chunk in chunks if chunk.tokens is not None]
    itl: tuple[tuple[float, int], ...] | None = None
    approximate = len(counts) < len(chunks)
    if approximate:
        after_first = (trace.output_tokens or 0) - 1
    else:
        after_first = sum(counts[1:])
        itl = tuple((gap / count, count) for gap, count in zip(gaps, counts[1:], strict=True) if count)
    tpot = (last.ms - first.ms) / after_first if after_first > 0 else None
    return RequestFigures(first.ms, tpot, last.ms, itl, gaps, trace.counted_tokens, approximate)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Speculation over a span of work, from differences of the engine's counters.

    `accepted_per_position[i]`: drafts whose token i was accepted. Accepted counts include tokens past a stop.
    """

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: tuple[int, ...]

    @property
    def rate(self) -> float | None:
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None

    @property
    def mean_length(self) -> float | None:
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def per_position(self) -> tuple[float, ...]:
        """Accepted at each position / drafts; empty without drafts."""
        return tuple(count / self.drafts for count in self.accepted_per_position) if self.drafts else ()

    def __add__(self, other: Acceptance) -> Acceptance:
        positions = zip_longest(self.accepted_per_position, other.accepted_per_position, fillvalue=0)
        return Acceptance(
            self.drafts + other.drafts,
            self.draft_tokens + other.draft_tokens,
            self.accepted_tokens + other.accepted_tokens,
            tuple(a + b for a, b in positions),
        )


def acceptance_between(before: Counters | None, after: Counters | None) -> Acceptance | None:
    """The acceptance between two moments; None where the engine reports no speculation counters."""
    if before is None or after is None:
        return None
    if after.drafts is None or after.draft_tokens is None or after.accepted_tokens is None:
        return None
    # A counter that never moved before is first reported after its first increment: absent means 0 here.
    positions = zip_longest(after.accepted_per_position or (), before.accepted_per_position or (), fillvalue=0)
    return Acceptance(
        after.drafts - (before.drafts or 0),
        after.draft_tokens - (before.draft_tokens or 0),
        after.accepted_tokens - (before.accepted_tokens or 0),
        tuple(late - early for late, early in positions),
    )


def acceptance_of(trials: Sequence[Trial]) -> Acceptance | None:
    """The acceptance over all trials together; None if it is unknown for any of them."""
    acceptances = [acceptance_between(trial.before, trial.after) for trial in trials]
    known = [acceptance for acceptance in acceptances if acceptance is not None]
    return reduce(add, known) if known and len(known) == len(acceptances) else None


def decode_steps(decode_tokens: int, acceptance: Acceptance) -> int:
    """How many steps decoded these tokens: each yields one token of the target besides the accepted ones."""
    return max(decode_tokens - acceptance.accepted_tokens, acceptance.drafts, 1)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def side_figures(side: SideRecord, plan: Measurement | None = None) -> SideFigures:
    """Figures over all trials: distributions of all their requests, rates over the sum of the trials' spans. A
    recording may hold them instead of its requests, and an imported run does. `plan` has the limits and the
    price."""
    if side.figures is not None:
        return side.figures
    figures = _figures(
        [trial.requests for trial in side.trials],
        acceptance_of(side.trials),
        speculates=side.settings.speculates,
        limits=plan.limits if plan else None,
    )
    return replace(
        figures,
        energy_per_output_token_j=energy_per_token_j(side.trials),
        cost_per_million_output_tokens=cost_per_million(side, side.trials, plan.price_per_hour if plan else None),
    )


def trace_figures(traces: Sequence[RequestTrace]) -> SideFigures:
    """The figures of one trial at an endpoint that may or may not speculate."""
    return _figures([traces], None, speculates=None, limits=None)


def _figures(
    trials: Sequence[Sequence[RequestTrace]],
    acceptance: Acceptance | None,
    *,
    speculates: bool | None,
    limits: Limits | None,
) -> SideFigures:
    """Figures of all requests that produced at least one token; errors are counted by kind."""
    traces = [trace for trial in trials for trace in trial]
    per_request = [request_figures(trace) for trace in traces]
    total_ms = sum(duration_ms(trial) or 0.0 for trial in trials)
    streamed = [
        figures for figures, trace in zip(per_request, traces, strict=True) if trace.chunks or not trace.problem
    ]
    tokens = output_tokens(traces)
    prompt_tokens = [trace.prompt_tokens for trace in traces if trace.chunks]
    known_prompts = None if None in prompt_tokens else sum(count or 0 for count in prompt_tokens)
    steps: int | None = None
    if tokens is not None and acceptance is not None:
        decode_tokens = tokens - sum(1 for trace in traces if trace.chunks)
        steps = decode_steps(decode_tokens, acceptance) if decode_tokens > 0 else None
        per_step = decode_tokens / steps if steps else None
    else:
        per_step = 1.0 if speculates is False and tokens else None
    finished = [trace.ended and trace.problem is None for trace in traces]
    return SideFigures(
        ttft_ms=Distribution.of(_known(figures.ttft_ms for figures in per_request)),
        tpot_ms=Distribution.of(_known(figures.tpot_ms for figures in per_request)),
        itl_ms=None
        if any(figures.itl_ms is None for figures in streamed)
        else Distribution.of_repeated([gap for figures in streamed for gap in figures.itl_ms or ()]),
        chunk_gap_ms=Distribution.of([gap for figures in per_request for gap in figures.chunk_gap_ms]),
        e2el_ms=Distribution.of(_known(figures.e2el_ms for figures in per_request)),
        output_tokens_per_s=tokens / total_ms * 1000 if tokens and total_ms else None,
        total_tokens_per_s=(tokens + known_prompts) / total_ms * 1000
        if tokens and known_prompts is not None and total_ms
        else None,
        requests_per_s=sum(finished) / total_ms * 1000 if any(finished) and total_ms else None,
        goodput_requests_per_s=goodput(trials, limits) if limits is not None and limits.is_set else None,
        acceptance_rate=acceptance.rate if acceptance else None,
        acceptance_rate_per_position=acceptance.per_position if acceptance else None,
        mean_acceptance_length=acceptance.mean_length if acceptance else None,
        draft_coverage=min(acceptance.drafts / steps, 1.0) if acceptance and steps else None,
        tokens_per_step=per_step,
        output_tokens=tokens,
        requests=len(traces),
        errors=dict(Counter(trace.problem.message_id for trace in traces if trace.problem)),
        approximate=any(figures.approximate for figures in per_request),
    )


def goodput(trials: Sequence[Sequence[RequestTrace]], limits: Limits) -> float | None:
    """Requests a second that finished within all given limits, over first send to last token of each trial.

    0 where none did. None where no token arrived, or where a finished request's figure for a limit is unknown.
    """
    total_ms = sum(duration_ms(trial) or 0.0 for trial in trials)
    if not total_ms:
        return None
    finished = [trace for trial in trials for trace in trial if trace.ended and trace.problem is None]
    within_limits = [_keeps(trace, limits) for trace in finished]
    return None if None in within_limits else within_limits.count(True) / total_ms * 1000


def _keeps(trace: RequestTrace, limits: Limits) -> bool | None:
    """Whether the request keeps to the limits; None where the figure for one of them is unknown."""
    figures = request_figures(trace)
    # An answer of a single token has no time between tokens: it can't break that limit.
    tpot = 0.0 if figures.output_tokens == 1 else figures.tpot_ms
    pairs = ((figures.ttft_ms, limits.ttft_ms), (tpot, limits.tpot_ms), (figures.e2el_ms, limits.e2el_ms))
    limited = [(value, limit) for value, limit in pairs if limit is not None]
    if any(value is not None and value > limit for value, limit in limited):
        return False
    return None if any(value is None for value, _ in limited) else True


def objective_value(traces: Sequence[RequestTrace], objective: Objective, limits: Limits) -> float | None:
    """The figure that decides, for one trial: mean TPOT or TTFT over its requests (ms), output tokens a second,
    or good requests a second. None if any request failed or its figure is unknown: a mean over the rest would
    flatter. Answers of a single token have no TPOT and are left out of it."""
    if objective == "goodput":
        return goodput([traces], limits)
    if any(trace.problem for trace in traces):
        return None
    per_request = [request_figures(trace) for trace in traces]
    if objective == "throughput":
        counted = _known(figures.output_tokens for figures in per_request)
        lasted_ms = duration_ms(traces)
        return sum(counted) / lasted_ms * 1000 if lasted_ms and len(counted) == len(per_request) else None
    if objective == "tpot":
        values = [figures.tpot_ms for figures in per_request if figures.output_tokens != 1]
    else:
        values = [figures.ttft_ms for figures in per_request]
    known = _known(values)
    return fmean(known) if known and len(known) == len(values) else None
