"""A sweep whose points a command measures: the same document comes back, and faults cost no point."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from support.endpoints import at, attached
from support.fake_server import FakeServer, Steady
from support.schema import check
from support.sweep_cases import case, sweep_over
from support.waiting import until

from playground.domain.errors import InvalidInput, WorkFailed
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.nodes import node_of
from playground.domain.sweep.record import Sweep
from playground.report.sweep import sweep_document
from playground.runs.elsewhere.command import CommandPlace
from playground.runs.host import Host
from playground.runs.sweep import SweepRun
from playground.store.transfer import dumped, loaded

HERE = "bash -c '{}'"


@pytest.fixture(autouse=True)
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name by which a place starts Python."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


async def swept(host: Host, sweep: Sweep, *templates: str) -> SweepRun:
    sweeping = host.sweep_run(sweep, [CommandPlace(template) for template in templates])
    await host.start(sweeping, "a test")
    await until(lambda: sweeping.finished, within_s=120)
    return sweeping


@pytest.mark.slow
@pytest.mark.alone
async def test_the_document_comes_back_and_is_kept_as_ours(host: Host, tmp_path: Path) -> None:
    """The second place is lost at once: what it takes is measured at the first."""
    async with FakeServer(Steady(rate=800)) as slow, FakeServer(Steady(rate=2400)) as quick:
        planned = case(attached("slow", at(slow)), attached("quick", at(quick)), tokens=24)
        sweep = (await swept(host, sweep_over(planned, 1, 2), f"echo welcome; {HERE}", "exit 7 # {}")).sweep
    assert (sweep.status, sweep.problem, sweep.remaining) == ("done", None, 0)
    stored = host.history.sweep(sweep.id)
    assert stored is not None
    for point in stored.points:
        assert point.run is not None
        assert (point.run.status, point.run.sweep_id, point.run.preset) == ("done", sweep.id, "p")
        assert point.run.machine["node"]
    for result in SweepAnalysis.of(stored).points:
        verdict = result.sides[1].verdict
        assert verdict is not None
        assert verdict.verdict == "faster"
    assert [line.id for line in host.history.summaries()] == [sweep.id]


@pytest.mark.slow
async def test_each_place_repeats_the_first_point(host: Host) -> None:
    """The history keeps it, and so does the sweep's file."""
    other = HERE + r""" | sed -E 's/(node\\?": \\?")[^"\\]*/\1other/'"""
    async with FakeServer(Steady(rate=2400)) as server:
        planned = case(attached("a", at(server)), attached("b", at(server)))
        sweep = (await swept(host, sweep_over(planned, 1, 2, 3), HERE, other)).sweep
    assert (sweep.status, sweep.problem) == ("done", None)
    stored = host.history.sweep(sweep.id)
    assert stored is not None
    [anchor] = stored.anchors
    assert node_of(anchor) == "other"
    assert anchor.measurement is not None
    assert anchor.measurement.profile.peak == 1
    assert node_of(stored.points[0].run) != "other"
    again = loaded(dumped(stored))
    assert isinstance(again, Sweep)
    assert [run.id for run in again.anchors] == [anchor.id]
    check("sweep", sweep_document(SweepAnalysis.of(stored)))


@pytest.mark.slow
@pytest.mark.alone
async def test_stop_ends_what_runs_there(host: Host) -> None:
    async with FakeServer(Steady(rate=200)) as server:
        planned = case(
            attached("a", at(server)),
            attached("b", at(server)),
            tokens=200,
            max_rounds=60,
            target_width=0.005,
            budget_s=60,
        )
        sweep = sweep_over(planned, 1, 2)
        sweeping = host.sweep_run(sweep, [CommandPlace(HERE)])
        await host.start(sweeping, "a test")
        await until(lambda: len(server.replies) > 6, within_s=60)
        sweeping.stop()
        await until(lambda: sweeping.finished, within_s=30)
    assert (sweep.status, sweep.remaining) == ("stopped", 2)
    run = sweep.points[0].run
    assert run is not None
    # What it has measured by then comes back, if it had begun.
    assert run.status == "stopped"


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        ("echo no such host >&2; exit 255 # {}", "elsewhere.no_answer"),
        ("echo '{ garbage' # {}", "import.not_ours"),
        ("echo '{\"run_id\": 1}' # {}", "import.no_record"),
        ("kill -9 $$ # {}", "elsewhere.no_answer"),
    ],
)
async def test_a_place_that_fails_is_given_up(host: Host, template: str, cause: str) -> None:
    """It ends the sweep, which can be resumed, and no point is called failed."""
    sweep = sweep_over(case(attached("a", "http://127.0.0.1:1"), attached("b", "http://127.0.0.1:1")), 1, 2)
    await swept(host, sweep, template)
    assert (sweep.status, sweep.remaining) == ("stopped", 2)
    assert sweep.problem is not None
    assert sweep.problem.message_id == "elsewhere.none_left"
    assert sweep.problem.params["cause"].message_id == cause


async def test_a_command_that_hangs_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("playground.processes.REMOTE_GRACE_S", 0.2)
    pid = tmp_path / "pid"
    with pytest.raises(WorkFailed) as error:
        await CommandPlace(f"sleep 1000 & echo $! > {pid}; wait # {{}}").measure("x", asyncio.Event(), 0.3)
    assert error.value.message_id == "elsewhere.timeout"
    await until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), within_s=5)


def test_a_template_says_where_the_command_belongs() -> None:
    with pytest.raises(InvalidInput) as error:
        CommandPlace("ssh host")
    assert error.value.message_id == "elsewhere.no_placeholder"
