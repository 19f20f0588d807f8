"""The figures that may decide a comparison, one value a trial. Unknown is None, and never flatters."""

from __future__ import annotations

import pytest

from playground.domain.message import Message
from playground.domain.record.metrics import goodput, objective_value
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.workload import ChatMessage, Limits

CONVERSATION = (ChatMessage(role="user", content="x"),)


def trace(*chunks: tuple[float, int | None], sent: float = 0, problem: Message | None = None) -> RequestTrace:
    made = [Chunk(ms, tokens, "x") for ms, tokens in chunks]
    return RequestTrace(CONVERSATION, sent_ms=sent, chunks=made, problem=problem, ended=True)


# TTFT 100, TPOT 10, E2EL 200; and TTFT 300, TPOT 50, E2EL 800. Together they span 1 second.
QUICK = trace((100, 1), (200, 10))
SLOW = trace((300, 1), (800, 10), sent=200)
SINGLE = trace((100, 1))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), 2),
        (Limits(ttft_ms=100), 1),
        (Limits(ttft_ms=99), 0),
        (Limits(tpot_ms=10), 1),
        (Limits(e2el_ms=800), 2),
        (Limits(ttft_ms=300, tpot_ms=49), 1),
        (Limits(ttft_ms=50, tpot_ms=1000, e2el_ms=1000), 0),
    ],
)
def test_goodput(limits: Limits, expected: float) -> None:
    assert goodput([[QUICK, SLOW]], limits) == expected


@pytest.mark.parametrize(
    ("traces", "limits", "expected"),
    [
        ([], Limits(), None),
        ([trace()], Limits(), None),
        # Without counts there is no TPOT; that matters only where it is limited, and not otherwise kept.
        ([trace((100, None), (1000, None))], Limits(tpot_ms=5), None),
        ([trace((100, None), (1000, None))], Limits(ttft_ms=100), 1),
        ([trace((100, None), (1000, None))], Limits(ttft_ms=50, tpot_ms=5), 0),
        ([QUICK, trace((100, 1), (1000, 9), problem=Message("stream.cut"))], Limits(), 1),
        ([SINGLE, SLOW], Limits(tpot_ms=1), 1),
    ],
    ids=["no request", "no token", "unknown", "not asked", "broken anyway", "failed", "single token"],
)
def test_goodput_edges(traces: list[RequestTrace], limits: Limits, expected: float | None) -> None:
    assert goodput([traces], limits) == expected


@pytest.mark.parametrize(
    ("objective", "expected"), [("tpot", 30), ("ttft", 200), ("throughput", 22), ("goodput", 1)]
)
def test_objective(objective: str, expected: float) -> None:
    found = objective_value([QUICK, SLOW], objective, Limits(ttft_ms=100))  # type: ignore[arg-type]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("objective", ["tpot", "ttft", "throughput", "goodput"])
@pytest.mark.parametrize("traces", [[], [trace()]], ids=["no request", "no token"])
def test_objective_unknown(objective: str, traces: list[RequestTrace]) -> None:
    assert objective_value(traces, objective, Limits()) is None  # type: ignore[arg-type]


def test_a_single_token_has_no_time_per_token() -> None:
    assert objective_value([QUICK, SINGLE], "tpot", Limits()) == 10
    assert objective_value([SINGLE], "tpot", Limits()) is None


def test_one_unknown_request_makes_the_mean_unknown() -> None:
    assert objective_value([QUICK, trace()], "ttft", Limits()) is None
    assert objective_value([QUICK, trace((100, None))], "throughput", Limits()) is None
