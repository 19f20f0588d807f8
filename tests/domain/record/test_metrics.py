"""Figures from raw timings: the definitions, worked by hand. Unknown is None, never 0."""

from __future__ import annotations

import pytest

from playground.domain.message import Message
from playground.domain.record.counters import Counters
from playground.domain.record.figures import Distribution
from playground.domain.record.metrics import (
    Acceptance,
    acceptance_between,
    decode_steps,
    objective_value,
    request_figures,
    side_figures,
    trace_figures,
)
from playground.domain.record.run import SideRecord, Trial
from playground.domain.record.token_sources import token_origins
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import ChatMessage, Limits

CONVERSATION = (ChatMessage(role="user", content="x"),)
OFF = EngineSettings(target="t")
NGRAM = EngineSettings(target="t", speculation=Ngram())


def trace(*chunks: tuple[float, int | None], **fields: object) -> RequestTrace:
    made = RequestTrace(CONVERSATION, chunks=[Chunk(ms, tokens, "x") for ms, tokens in chunks], ended=True)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_request_with_several_tokens_a_chunk() -> None:
    figures = request_figures(trace((100, 1), (150, 2), (210, 3)))
    assert figures.ttft_ms == 100
    assert figures.e2el_ms == 210
    # 110 ms for the five tokens after the first chunk.
    assert figures.tpot_ms == 22
    assert figures.decode_tokens_per_s == pytest.approx(1000 / 22)
    assert figures.chunk_gap_ms == (50, 60)
    # A gap is spread over its chunk's tokens.
    assert figures.itl_ms == ((25, 2), (20, 3))
    assert figures.output_tokens == 6
    assert not figures.approximate


def test_tokens_in_the_first_chunk_are_not_decoded_ones() -> None:
    assert request_figures(trace((100, 4), (140, 2))).tpot_ms == 20


@pytest.mark.parametrize(
    ("made", "ttft", "tpot", "tokens"),
    [
        (trace(), None, None, None),
        (trace((80, 1)), 80, None, 1),
        (trace((80, None), (100, None)), 80, None, None),
        (trace((80, None), (100, None), output_tokens=5), 80, 5, 5),
        # One chunk without a count makes all counts unusable.
        (trace((80, 1), (100, None), output_tokens=3), 80, 10, 3),
        (trace((80, None), output_tokens=1), 80, None, 1),
    ],
    ids=["no token", "one token", "no counts", "final usage", "some counts", "one token by usage"],
)
def test_unknown_is_none(made: RequestTrace, ttft: object, tpot: object, tokens: object) -> None:
    figures = request_figures(made)
    assert (figures.ttft_ms, figures.tpot_ms, figures.output_tokens) == (ttft, tpot, tokens)
    if tpot is None:
        assert figures.decode_tokens_per_s is None


def test_approximate_figures_have_no_itl() -> None:
    figures = request_figures(trace((80, None), (100, None), output_tokens=5))
    assert figures.approximate
    assert figures.itl_ms is None
    assert figures.chunk_gap_ms == (20,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([3.0], Distribution(3, 3, 3, 3, 3, 1)),
        ([float(n) for n in range(101)], Distribution(50, 50, 90, 95, 99, 101)),
        # Linear between the two: no percentile lies outside what was seen.
        ([10.0, 20.0], Distribution(15, 15, 19, 19.5, 19.9, 2)),
    ],
)
def test_distribution(values: list[float], expected: Distribution | None) -> None:
    found = Distribution.of(values)
    if expected is None:
        assert found is None
        return
    assert found is not None
    for name in ("mean", "p50", "p90", "p95", "p99", "n"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


BEFORE = Counters(drafts=10, draft_tokens=50, accepted_tokens=20, accepted_per_position=(10, 6, 4))
AFTER = Counters(drafts=14, draft_tokens=70, accepted_tokens=29, accepted_per_position=(14, 8, 6, 1))


def test_acceptance_is_the_difference_of_counters() -> None:
    found = acceptance_between(BEFORE, AFTER)
    assert found == Acceptance(4, 20, 9, (4, 2, 2, 1))
    assert found.rate == 9 / 20
    assert found.mean_length == 1 + 9 / 4


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, AFTER, None),
        (BEFORE, None, None),
        (Counters(), Counters(), None),
        # Counters appear with their first increment.
        (Counters(), AFTER, Acceptance(14, 70, 29, (14, 8, 6, 1))),
        (BEFORE, BEFORE, Acceptance(0, 0, 0, (0, 0, 0))),
    ],
    ids=["no before", "no after", "no speculation", "counters were absent", "nothing drafted"],
)
def test_acceptance_unknown(before: Counters | None, after: Counters | None, expected: object) -> None:
    assert acceptance_between(before, after) == expected


def test_nothing_drafted_has_no_rate() -> None:
    nothing = acceptance_between(BEFORE, BEFORE)
    assert nothing is not None
    assert nothing.rate is None
    assert nothing.mean_length is None


@pytest.mark.parametrize(
    ("tokens", "acceptance", "steps"),
    [
        (10, Acceptance(3, 15, 6, ()), 4),
        # Accepted counts include tokens past a stop: never fewer steps than drafts, nor none.
        (10, Acceptance(5, 25, 9, ()), 5),
        (1, Acceptance(0, 0, 3, ()), 1),
    ],
)
def test_decode_steps(tokens: int, acceptance: Acceptance, steps: int) -> None:
    assert decode_steps(tokens, acceptance) == steps


def test_side_with_speculation() -> None:
    """13 tokens, the first by the prefill: 12 decoded, 4 accepted, so 8 steps, in 2 of which there was a draft."""
    side = SideRecord("B", NGRAM, trials=[Trial(requests=[trace((100, 1), (200, 4), (300, 8))])])
    side.trials[0].before = Counters(drafts=0, draft_tokens=0, accepted_tokens=0)
    side.trials[0].after = Counters(
        drafts=2, draft_tokens=10, accepted_tokens=4, accepted_per_position=(2, 1, 1, 0, 0)
    )
    figures = side_figures(side)
    assert figures.acceptance_rate == 0.4
    assert figures.mean_acceptance_length == 3
    assert figures.acceptance_rate_per_position == (1, 0.5, 0.5, 0, 0)
    assert figures.tokens_per_step == 12 / 8
    assert figures.draft_coverage == 2 / 8
    assert figures.output_tokens == 13


def test_side_without_speculation_makes_one_token_a_step() -> None:
    figures = side_figures(SideRecord("A", OFF, trials=[Trial(requests=[trace((100, 1), (200, 1))])]))
    assert figures.tokens_per_step == 1
    assert figures.acceptance_rate is None
    assert figures.draft_coverage is None


def test_side_that_speculates_without_counters_is_unknown() -> None:
    figures = side_figures(SideRecord("B", NGRAM, trials=[Trial(requests=[trace((100, 1), (200, 3))])]))
    assert figures.tokens_per_step is None
    assert figures.acceptance_rate is None
    assert figures.mean_acceptance_length is None


def test_throughput_is_from_first_send_to_last_token() -> None:
    # 100 .. 1100 ms and 600 .. 2100 ms: seven tokens and two requests in two seconds.
    requests = [trace((500, 1), (1000, 2), sent_ms=100), trace((700, 1), (1500, 3), sent_ms=600)]
    figures = side_figures(SideRecord("A", OFF, trials=[Trial(requests=requests)]))
    assert figures.output_tokens_per_s == 3.5
    assert figures.requests_per_s == 1
    assert figures.ttft_ms is not None
    assert (figures.ttft_ms.mean, figures.ttft_ms.n) == (600, 2)


def test_errors_are_counted_by_kind() -> None:
    broken = [trace((10, 1), problem=Message(f"stream.{kind}")) for kind in ("cut", "cut", "http")]
    figures = side_figures(SideRecord("A", OFF, trials=[Trial(requests=[*broken, trace((10, 1), (20, 1))])]))
    assert figures.errors == {"stream.cut": 2, "stream.http": 1}
    assert figures.requests == 4
    # A request that failed is no finished request.
    assert figures.requests_per_s == pytest.approx(1000 / 20)


def test_side_without_requests() -> None:
    figures = side_figures(SideRecord("A", OFF))
    assert figures.requests == 0
    known = {"requests", "errors", "approximate"}
    assert {name for name in figures.__dataclass_fields__ if getattr(figures, name) is not None} == known


def test_a_side_of_several_trials() -> None:
    """Rates over the trials' own spans added up: what lies between two trials is no time of this side."""
    counters = [
        Counters(drafts=n, draft_tokens=5 * n, accepted_tokens=n, accepted_per_position=(n,)) for n in range(4)
    ]
    first = Trial(0, 0.0, [trace((500, 1), (1000, 2))], counters[0], counters[1])
    second = Trial(1, 60_000.0, [trace((500, 1), (1000, 4))], counters[1], counters[3])
    figures = side_figures(SideRecord("B", NGRAM, trials=[first, second]))
    assert figures.output_tokens_per_s == 8 / 2
    assert figures.requests_per_s == 1
    assert figures.requests == 2
    assert figures.acceptance_rate == 3 / 15
    assert figures.acceptance_rate_per_position == (1.0,)
    # Six decoded tokens, three of them accepted drafts.
    assert figures.tokens_per_step == 2
    second.after = None
    assert side_figures(SideRecord("B", NGRAM, trials=[first, second])).acceptance_rate is None


def test_one_uncounted_request_makes_the_sum_unknown() -> None:
    figures = side_figures(
        SideRecord("A", OFF, trials=[Trial(requests=[trace((10, 1), (20, 1)), trace((10, None), (20, None))])])
    )
    assert figures.output_tokens is None
    assert figures.output_tokens_per_s is None
    assert figures.itl_ms is None
    assert figures.approximate


def test_goodput_counts_requests_that_kept_to_every_limit() -> None:
    fast, slow, broken = trace((10, 1), (20, 1)), trace((10, 1), (90, 1)), trace((10, 1), (20, 1))
    broken.problem = Message("stream.cut", {})
    side = SideRecord("A", OFF, trials=[Trial(requests=[fast, slow, broken])])
    figures = side_figures(side, Measurement(limits=Limits(ttft_ms=50, tpot_ms=20)))
    assert figures.goodput_requests_per_s == pytest.approx(1 / 0.09)
    # Kept by none: that is known, and is 0.
    assert side_figures(side, Measurement(limits=Limits(e2el_ms=1))).goodput_requests_per_s == 0
    assert side_figures(side).goodput_requests_per_s is None
    assert side_figures(side, Measurement(limits=Limits())).goodput_requests_per_s is None


def test_total_throughput_needs_the_prompts_lengths() -> None:
    requests = [trace((10, 1), (20, 1)), trace((10, 1), (20, 1))]
    assert trace_figures(requests).total_tokens_per_s is None
    for request in requests:
        request.prompt_tokens = 8
    figures = trace_figures(requests)
    assert figures.output_tokens_per_s == pytest.approx(4 / 0.02)
    assert figures.total_tokens_per_s == pytest.approx(20 / 0.02)


def test_an_endpoint_of_unknown_speculation_has_unknown_tokens_per_step() -> None:
    requests = [trace((10, 1), (20, 1))]
    assert trace_figures(requests).tokens_per_step is None


def test_a_request_that_failed_before_its_first_token_hides_nothing() -> None:
    refused = trace(problem=Message("stream.http"))
    figures = trace_figures([refused, trace((10, 1), (20, 1))])
    assert figures.output_tokens == 2
    assert figures.itl_ms is not None
    # But a trial in which requests failed has no value that could decide.
    for objective in ("tpot", "ttft", "throughput"):
        assert objective_value([refused, trace((10, 1), (20, 1))], objective, Limits()) is None


@pytest.mark.parametrize(
    "values",
    [
        [(2.0, 1)],
        [(25.0, 2), (20.0, 3)],
        [(3.0, 7), (1.0, 1), (2.0, 4), (1.0, 5)],
        [(float(number % 17), number % 5) for number in range(200)],
    ],
)
def test_values_that_occur_more_than_once(values: list[tuple[float, int]]) -> None:
    """The same as if they were written out."""
    counted = Distribution.of_repeated(values)
    written_out = Distribution.of([value for value, count in values for _ in range(count)])
    assert counted == written_out
    assert Distribution.of_repeated([(1.0, 0)]) is None


def test_a_count_that_nothing_vouches_for_takes_no_memory() -> None:
    """A stored one: today's parser refuses it."""
    absurd = trace((100, 1), (150, 10**15))
    figures = trace_figures([absurd])
    assert figures.itl_ms is not None
    assert figures.itl_ms.n == 10**15
    assert token_origins(absurd, speculates=True) == (None, False)
    absurd.steps = StepArrays((10**15,), (10**15,))
    assert token_origins(absurd, speculates=True) == (None, False)
    few = trace((100, 1), (150, 2), steps=StepArrays((10**15,), (10**15,)))
    assert token_origins(few, speculates=True) == ([False, True, False], False)
