"""The highest load within the limits, of engines whose latency grows with the load as is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.case import Case, Side
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.spec.workload import Limits, Workload
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.highest_load import HighestLoad, highest_loads
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import PointRecord, Sweep
from playground.i18n import LOCALES, say_message
from playground.report.sweep import conclusions_of, sweep_document

LOADS = (1, 2, 4, 8, 16, 32)
WOBBLE = (1.0, 1.03, 0.98, 1.01, 0.99, 1.02)
Latency = Callable[[float], float]


def request(ttft_ms: float) -> RequestTrace:
    return RequestTrace((), 0, [Chunk(ttft_ms, 1, "a"), Chunk(ttft_ms + 10, 1, "b")], "stop", 1, 2, ended=True)


def swept(*latencies: Latency, rounds: int = 6, limit: float | None = 100, name: str = "concurrency") -> Sweep:
    """Of ten requests of a round one takes ten times as long: nine keep the limit."""
    labels = [f"side{index}" for index in range(len(latencies))]
    settings = AttachedEndpoint(base_url="http://127.0.0.1:1", model="m")
    case = Case(
        sides=tuple(Side(label=label, engine=settings) for label in labels),
        workload=Workload(prompt="x"),
        measurement=Measurement(limits=Limits(ttft_ms=limit)),
    )
    plan = SweepPlan.model_validate({"knobs": [{"name": name, "values": LOADS}]})
    sweep = Sweep("20261201-120000-abcd", "2026-12-01T12:00:00+00:00", plan, case)
    for number, load in enumerate(LOADS):
        sides = [SideRecord(label, settings) for label in labels]
        for side, latency in zip(sides, latencies, strict=True):
            for round_, wobble in enumerate(WOBBLE[:rounds]):
                ms = latency(load) * wobble
                requests = [*(request(ms) for _ in range(9)), request(10 * ms)]
                side.trials.append(Trial(round_, 0, requests, complete=True))
        run = Run("r", sweep.created_at, "measured", case.workload, sides, case.measurement, status="done")
        sweep.points.append(PointRecord(number, (load,), run))
    return sweep


def bounds(highest: HighestLoad) -> tuple[float | None, float | None]:
    return highest.at_least, highest.below


@pytest.mark.parametrize("name", ["concurrency", "requests_per_s"])
def test_where_each_side_leaves_the_limits(name: str) -> None:
    # 100 ms at 10 and at 20.
    slow, quick = highest_loads(swept(lambda load: 10 * load, lambda load: 5 * load, name=name))
    assert slow.load is not None
    assert quick.load is not None
    assert quick.ratio is not None
    assert slow.load.value == pytest.approx(10, rel=0.05)
    assert quick.load.value == pytest.approx(20, rel=0.05)
    assert slow.load.interval[0] < 10 < slow.load.interval[1]
    # Both wobble alike, so that their ratio does not.
    assert quick.ratio.value == pytest.approx(2)
    assert quick.ratio.interval == pytest.approx((2, 2), rel=0.01)
    assert (bounds(slow), bounds(quick)) == ((8, 16), (16, 32))


def test_outside_of_what_was_measured() -> None:
    always, never, within = highest_loads(swept(lambda load: 1, lambda load: 1000, lambda load: 10 * load))
    assert (always.load, never.load, within.ratio) == (None, None, None)
    assert (bounds(always), bounds(never)) == ((32, None), (None, 1))
    # In the middle of a few rounds.
    [few, _] = highest_loads(swept(lambda load: 10 * load, lambda load: 1, rounds=3))
    assert few.load is None
    assert bounds(few) == (8, 16)


def test_a_load_beyond_the_first_that_breaks_them_does_not_count() -> None:
    [side, _] = highest_loads(swept(lambda load: 1000 if load == 4 else 10, lambda load: 1))
    assert bounds(side) == (2, 4)
    assert side.load is not None
    assert 2 < side.load.value < 4


def test_nothing_is_said_without_limits_or_with_failures() -> None:
    assert highest_loads(swept(lambda load: load, lambda load: load, limit=None)) == []
    assert highest_loads(swept(lambda load: load, lambda load: load, name="output_tokens")) == []
    sweep = swept(lambda load: 10 * load, lambda load: load)
    assert sweep.points[0].run is not None
    sweep.points[0].run.sides[0].trials[0].requests[0].problem = Message("stream.cut")
    assert highest_loads(sweep) == []


def test_said_in_words_and_in_the_document() -> None:
    analysis = SweepAnalysis.of(
        swept(lambda load: 10 * load, lambda load: 5 * load, lambda load: 1, lambda load: 999)
    )
    said = [sentence for sentence in conclusions_of(analysis) if sentence.message_id.startswith("highest.")]
    assert [sentence.message_id for sentence in said] == [
        "highest.load",
        "highest.compared",
        "highest.open",
        "highest.none",
    ]
    for locale in LOCALES:
        assert "2.00" in say_message(said[1], locale)
    highest = sweep_document(analysis)["highest_load"]
    assert [item["below"] for item in highest] == [16, 32, None, 1]
    assert highest[1]["ratio"] == pytest.approx(2)
