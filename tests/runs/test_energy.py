"""Energy and cost of a measured run, on stand-ins for cards and engines."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from support.measured_run import measured_run
from support.nvml import Card, StandIn, with_cards
from support.races import SIDES
from support.waiting import until

from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.workload import Sampling, Workload
from playground.domain.stats.expenses import Expense, expense_ratios
from playground.engine import runtime
from playground.engine.devices import Placement
from playground.engine.gpu_load import GpuLoad
from playground.engine.server import Engine
from playground.load.driver_client import MeasuredLoad
from playground.load.endpoint import Endpoint
from playground.report.charts import charts_of
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.findings import findings
from playground.report.tables import tables
from playground.runs.host import Host
from playground.runs.sides import energy
from playground.runs.sides.energy import EnergyMeter, Reading, joules_between
from playground.runs.sides.served_side import ServedSide

ENERGY: Expense = "energy_per_output_token_j"
COST: Expense = "cost_per_million_output_tokens"
OURS = (frozenset({1, 2}),)
FIRST = GpuLoad(power_w=100, energy_j=1000, processes=OURS)
LAST = GpuLoad(power_w=300, energy_j=1900, processes=OURS)


@pytest.fixture
def on_gpus(monkeypatch: pytest.MonkeyPatch, fake_runtime: None) -> None:
    """The engines' stand-ins say that they run on GPUs."""
    probe = runtime.probe
    monkeypatch.setattr(
        "playground.engine.runtime.probe", lambda config, name: replace(probe(config, name), device="cuda")
    )
    monkeypatch.setattr(energy, "LEAST_S", 0.0)


async def measured(host: Host) -> Run:
    plan = Measurement.model_validate(
        {
            "profile": {"kind": "concurrency", "concurrency": 2, "requests": 2},
            "max_rounds": 6,
            "target_width": 0.005,
            "check_outputs": False,
            "price_per_hour": 3.6,
        }
    )
    workload = Workload(prompt="x", sampling=Sampling(max_tokens=20))
    comparison = host.comparison(SIDES, workload, plan)
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished, within_s=60)
    assert comparison.run.problem is None
    return comparison.run


@pytest.mark.slow
async def test_energy_of_sides_on_a_card_of_their_own(
    host: Host, on_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(monkeypatch, StandIn(Card(processes=(1,)), Card(watts=1000, processes=(2,), throttle=0x4)))
    run = await measured(host)
    assert [side.placement for side in run.sides] == ["CUDA 0", "CUDA 1"]
    assert all(trial.energy_j for side in run.sides for trial in side.trials)
    assert host.history.get(run.id) == run
    ratios = {expense.figure: expense.ratio for expense in expense_ratios(run)}
    # Equal engines, on cards of which one takes twice the power.
    assert ratios[ENERGY].value / ratios[COST].value == pytest.approx(2, rel=0.25)
    sentences = [item.sentence.message_id for item in conclusions(run)]
    assert {f"expense.{ENERGY}", f"expense.{COST}"} <= set(sentences)
    document = compare_document(run)
    assert [item["figure"] for item in document["expenses"]] == [ENERGY, COST]
    assert all(side["figures"][name] > 0 for side in document["sides"] for name in (ENERGY, COST))
    powers = {sample.counters.gpu_power_w for sample in run.sides[1].samples}
    assert powers == {1000.0}
    assert {"gpu_power", "gpu_clock"} <= charts_of(run, "en").keys()


def test_a_processor_has_no_energy() -> None:
    run = measured_run(price_per_hour=2)
    names = [row.name for row in tables(run).single]
    assert not any("energy" in name for name in names)
    assert any("cost" in name for name in names)
    [cost] = expense_ratios(run)
    assert (cost.figure, cost.side, cost.baseline) == (COST, "quick", "plain")
    # 2 an hour for 22 tokens a trial of 400 + 30 + 10 gaps.
    assert side_figures(run.sides[0], run.measurement).cost_per_million_output_tokens == pytest.approx(
        2 / 3600 * 0.63 / 22 * 1e6, rel=0.01
    )
    assert expense_ratios(measured_run()) == []
    run.sides[0].trials[2].requests[0].problem = Message("stream.cut")
    assert expense_ratios(run) == []


class Side(ServedSide):
    """A side whose card two engines share, and reports these loads, one after the other."""

    def __init__(self, *loads: GpuLoad | None) -> None:
        placement = Placement("cuda", gpus=(0,), sharing=2)
        super().__init__(cast(Endpoint, None), cast(Engine, SimpleNamespace(placement=placement)))
        object.__setattr__(self, "loads", list(loads))

    async def gpu_load(self) -> GpuLoad | None:
        loads: list[GpuLoad | None] = self.__dict__["loads"]
        return loads.pop(0)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (FIRST, LAST, 900),
        (replace(FIRST, processes=(frozenset({1, 2, 3}),)), LAST, None),
        # A process of ours, whatever it is: this machine's ids, and more of them than engines.
        (replace(FIRST, processes=(frozenset({11, 12, 13}),)), LAST, 900),
        (FIRST, replace(LAST, processes=None), None),
        (None, LAST, None),
    ],
)
async def test_only_cards_that_nobody_else_uses_are_metered(
    first: GpuLoad | None, last: GpuLoad, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "LEAST_S", 0.0)
    monkeypatch.setattr("playground.runs.sides.served_side.own_processes", lambda: frozenset({11, 12, 13}))
    load = SimpleNamespace(began=asyncio.Event(), ended=asyncio.Event())
    meter = EnergyMeter(Side(first, last), since=0)
    load.began.set()
    async with meter.over(cast(MeasuredLoad, load)):
        load.ended.set()
    assert meter.joules([]) == expected


@pytest.mark.parametrize(
    ("first", "last", "ended_ms", "expected"),
    [
        (FIRST, LAST, 14_000, 900),
        # Without a counter by the power: 2 s from 100 to 200 W, 2 s from 200 to 300 W.
        (replace(FIRST, energy_j=None), replace(LAST, energy_j=None), 14_000, 300 + 500),
        (replace(FIRST, energy_j=None, power_w=None), replace(LAST, energy_j=None), 14_000, None),
        # The driver was loaded again meanwhile.
        (replace(FIRST, energy_j=5000), LAST, 14_000, None),
        (FIRST, LAST, 10_900, None),
    ],
)
def test_joules(first: GpuLoad, last: GpuLoad, ended_ms: float, expected: float | None) -> None:
    samples = [Sample(ms, Counters(gpu_power_w=200)) for ms in (9_000, 12_000, 15_000)]
    assert joules_between(Reading(10_000, first), Reading(ended_ms, last), samples) == expected


@pytest.mark.parametrize(
    ("throttle", "mhz", "rule"),
    [
        (0x4, 1200, "power_cap"),
        (0x4, 1965, None),
        (0x24, 1200, "slowed"),
        (0x24, 1965, "slowed"),
        (0x80, 1200, "slowed"),
        (0x1, 1200, None),
        (0, 1200, None),
    ],
)
def test_a_throttled_card_is_a_finding(throttle: int, mhz: float, rule: str | None) -> None:
    run = measured_run()
    for side, bits, clock in zip(run.sides, (0, throttle), (1980, mhz), strict=True):
        side.samples = [
            Sample(item.ms, replace(item.counters, gpu_throttle=bits, gpu_clock_mhz=clock, gpu_temperature_c=90))
            for item in side.samples
        ]
    rules = {finding.rule for finding in findings(run)} & {"power_cap", "slowed"}
    assert rules == ({rule} if rule else set())
