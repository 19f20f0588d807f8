"""A sweep as it runs: within its budget, stopped, gone on with, some of its points failing. Endpoints of our own
stand for engines here."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.endpoints import at, attached
from support.fake_server import FakeServer, Reply, Steady
from support.schema import check
from support.sweep_cases import case, sweep_over
from support.waiting import until

from playground.cli.main import main
from playground.domain.errors import HostBusy, InvalidInput
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.plan import Knob, SweepPlan
from playground.domain.sweep.record import Sweep
from playground.i18n import LOCALES, say_message
from playground.report.sweep import conclusions_of, plan_document, plan_sentences, sweep_document
from playground.runs.host import Host
from playground.runs.sweep import SweepRun, estimate, new_sweep

pytestmark = pytest.mark.slow


async def swept(host: Host, sweep: Sweep) -> SweepRun:
    sweeping = host.sweep_run(sweep)
    await host.start(sweeping, "a test")
    await until(lambda: sweeping.finished, within_s=120)
    return sweeping


def stored(host: Host, sweep: Sweep) -> Sweep:
    found = host.history.sweep(sweep.id)
    assert found is not None
    return found


async def test_every_point_is_measured_and_kept(host: Host) -> None:
    async with FakeServer(Steady(rate=50)) as slow, FakeServer(Steady(rate=1000)) as quick:
        made = case(attached("slow", at(slow)), attached("quick", at(quick)))
        sweep = (await swept(host, sweep_over(made, 1, 2))).sweep
    assert (sweep.status, sweep.problem, sweep.remaining) == ("done", None, 0)
    kept = stored(host, sweep)
    assert (kept.plan, kept.case, kept.status) == (sweep.plan, sweep.case, "done")
    for point, concurrency in zip(kept.points, (1, 2), strict=True):
        assert point.run is not None
        assert point.run.sweep_id == sweep.id
        assert point.run.measurement is not None
        assert point.run.measurement.profile.peak == concurrency
    for result in SweepAnalysis.of(kept).points:
        one, other = result.sides
        assert one.verdict is None
        assert other.verdict is not None
        assert other.verdict.verdict == "faster"
        assert other.objective.interval is not None
        assert other.objective.value is not None
        assert other.objective.interval[0] < other.objective.value < other.objective.interval[1]
    document = check("sweep", sweep_document(SweepAnalysis.of(kept)))
    assert document == check("sweep", sweep_document(SweepAnalysis.of(sweep)))
    assert document["recommended"]["values"] is None
    assert [point["values"] for point in document["points"]] == [{"concurrency": 1}, {"concurrency": 2}]
    for locale in LOCALES:
        assert all(say_message(sentence, locale) for sentence in conclusions_of(SweepAnalysis.of(kept)))


async def test_the_history_lists_the_sweep_and_not_its_points(host: Host) -> None:
    async with FakeServer(Steady()) as server:
        made = case(attached("a", at(server)), attached("b", at(server)), budget_s=0.1)
        sweep = (await swept(host, sweep_over(made, 1))).sweep
    [line] = host.history.summaries()
    assert (line.id, line.mode, line.prompt, line.labels) == (sweep.id, "sweep", "concurrency (1)", ("a", "b"))
    for found in (dict(text="concurrency"), dict(text="0@"), dict(model="playground"), dict(preset="p")):
        assert [one.id for one in host.history.summaries(**found)] == [sweep.id]
    for nothing in (dict(text="nowhere"), dict(model="other"), dict(preset="q")):
        assert host.history.summaries(**nothing) == []


async def test_stopped_and_gone_on_with(host: Host) -> None:
    """What is measured stays; the point that was cut off is measured again."""
    async with FakeServer(Steady(rate=200)) as server:
        made = case(attached("a", at(server)), attached("b", at(server)), tokens=10, budget_s=0.1)
        sweep = sweep_over(made, 1, 2, 3)
        sweeping = host.sweep_run(sweep)
        await host.start(sweeping, "a test")
        await until(lambda: sweep.points[0].settled and sweep.points[1].run is not None, within_s=60)
        sweeping.stop()
        await until(lambda: sweeping.finished)
        assert sweep.status == "stopped"
        first, second = (point.run for point in sweep.points[:2])
        assert first is not None
        assert second is not None
        again = stored(host, sweep)
        assert again.remaining == 2
        await swept(host, again)
    kept = stored(host, sweep)
    assert (kept.status, kept.remaining) == ("done", 0)
    runs = [point.run for point in kept.points]
    assert all(run is not None and run.status == "done" for run in runs)
    assert runs[0] is not None
    assert runs[0].id == first.id
    assert runs[1] is not None
    assert runs[1].id != second.id


async def test_after_a_crash_it_can_go_on(host: Host) -> None:
    sweep = sweep_over(case(attached("a", "http://127.0.0.1:1"), attached("b", "http://127.0.0.1:1")), 1)
    host.history.begin_sweep(sweep)
    host.history.mark_interrupted()
    kept = stored(host, sweep)
    assert (kept.status, kept.remaining) == ("interrupted", 1)


async def test_a_failed_point_is_a_result(host: Host) -> None:
    """The side fails whenever four ask at once."""
    under_way = most = 0

    async def script(reply: Reply) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.2)
        if most > 3:
            await reply.whole("500 Internal Server Error", '{"error": {"message": "too many"}}')
        else:
            await Steady(rate=2000)(reply)
        under_way -= 1
        most = most if under_way else 0

    async with FakeServer(script) as server, FakeServer(Steady(rate=2000)) as good:
        made = case(attached("a", at(good)), attached("b", at(server)), budget_s=0.1)
        sweep = (await swept(host, sweep_over(made, 1, 6, 2))).sweep
    assert [point.run and point.run.status for point in sweep.points] == ["done", "failed", "done"]
    assert sweep.status == "done"
    document = check("sweep", sweep_document(SweepAnalysis.of(stored(host, sweep))))
    assert [point["problem"] is None for point in document["points"]] == [True, False, True]
    assert any(sentence.message_id == "sweep.point_failed" for sentence in conclusions_of(SweepAnalysis.of(sweep)))


@pytest.mark.alone
async def test_the_budget_ends_it(host: Host) -> None:
    async with FakeServer(Steady(rate=1000)) as server:
        made = case(attached("a", at(server)), attached("b", at(server)))
        sweep = (await swept(host, sweep_over(made, *range(1, 9), budget_s=6))).sweep
    assert sweep.status == "stopped"
    assert sweep.problem is not None
    assert sweep.problem.message_id == "sweep.budget_spent"
    assert 0 < sum(point.settled for point in sweep.points) < 8
    assert stored(host, sweep).problem == sweep.problem


async def test_points_with_too_little_time_are_measured_again(host: Host) -> None:
    async with FakeServer(Steady(rate=400)) as server:
        made = case(attached("a", at(server)), attached("b", at(server)), tokens=8)
        sweep = (await swept(host, sweep_over(made, 1, budget_s=2))).sweep
        assert sweep.problem is not None
        assert (sweep.status, sweep.problem.message_id, sweep.remaining) == ("stopped", "sweep.few_rounds", 1)
        again = stored(host, sweep)
        assert again.remaining == 1
        again.plan = again.plan.model_copy(update={"budget_s": 600.0})
        await swept(host, again)
    kept = stored(host, sweep)
    assert (kept.status, kept.problem, kept.remaining) == ("done", None, 0)
    assert SweepAnalysis.of(kept).points[0].sides[1].objective.interval is not None


async def test_another_turn_that_fails_takes_nothing_away(host: Host) -> None:
    async with FakeServer(Steady(rate=400)) as server:
        made = case(attached("a", at(server)), attached("b", at(server)), tokens=8)
        few = (await swept(host, sweep_over(made, 1, budget_s=2))).sweep
    before = few.points[0].run
    assert before is not None
    again = stored(host, few)
    again.plan = again.plan.model_copy(update={"budget_s": 600.0})
    # Nobody answers there any more.
    await swept(host, again)
    kept = stored(host, few)
    assert kept.points[0].run == before
    assert (kept.status, kept.remaining) == ("stopped", 1)


def test_a_letter_and_a_label_of_the_same_side() -> None:
    made = case(*(Side(label=name, engine=EngineSettings(target="m")) for name in ("a", "b")))
    knobs = (Knob(name="max_num_seqs", values=(1,), side="B"), Knob(name="max_num_seqs", values=(2,), side="b"))
    with pytest.raises(InvalidInput):
        new_sweep(SweepPlan(knobs=knobs), made)


async def test_what_another_copy_measured_stays_measured(host: Host) -> None:
    async with FakeServer(Steady()) as server:
        made = case(attached("a", at(server)), attached("b", at(server)), budget_s=0.1)
        sweep = sweep_over(made, 1)
        host.history.begin_sweep(sweep)
        stale = stored(host, sweep)
        await swept(host, sweep)
        late = host.sweep_run(stale)
        await host.start(late, "a test")
        await until(lambda: late.finished)
    kept = stored(host, sweep)
    assert kept.points[0].run is not None
    assert sweep.points[0].run is not None
    assert kept.points[0].run.id == sweep.points[0].run.id


def test_a_budget_below_all_starts_still_measures_some(host: Host) -> None:
    made = case(*(Side(label=name, engine=EngineSettings(target="m")) for name in "ab"))
    told = estimate(host.history, sweep_over(made, *range(1, 65), name="max_num_seqs", budget_s=3600), "cpu")
    assert told.engine_starts * told.start_s > 3600
    assert 0 < told.fitting < 64
    assert told.point_s > 0
    assert told.total_s <= 3600
    assert any(sentence.message_id == "sweep.not_all_fit" for sentence in plan_sentences(told))


async def test_one_at_a_time(host: Host) -> None:
    async with FakeServer(Steady(rate=50)) as server:
        sides = (attached("a", at(server)), attached("b", at(server)))
        sweeping = host.sweep_run(sweep_over(case(*sides), 1))
        await host.start(sweeping, "a test")
        with pytest.raises(HostBusy):
            await host.start(host.comparison(sides, case().workload), "another")
        assert host.followed_sweep(sweeping.id) is sweeping
        await until(lambda: host.latest is not None and host.latest.run.sweep_id == sweeping.id)
        sweeping.stop()
        await until(lambda: sweeping.finished)


async def test_what_the_host_does_not_allow_starts_nothing(host: Host) -> None:
    made = case(Side(label="a", engine=EngineSettings(target="m")), attached("b", "http://127.0.0.1:1"))
    with pytest.raises(InvalidInput):
        host.sweep_run(sweep_over(made, "default", "elsewhere", name="runtime"))
    assert host.history.summaries() == []


def test_the_estimate_learns_from_earlier_starts(host: Host) -> None:
    made = case(*(Side(label=name, engine=EngineSettings(target="m")) for name in "ab"), budget_s=100)
    sweep = sweep_over(made, 1, 2, name="max_num_seqs")
    guessed = estimate(host.history, sweep, "cpu")
    assert (guessed.points, guessed.engine_starts, guessed.known_starts) == (2, 4, 0)
    assert guessed.total_s <= sweep.plan.budget_s
    check("sweep_plan", plan_document(guessed))


def test_command_line_plan(fake_runtime: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "smollm2-ngram", "--knob", "k=1..3", "--plan", "--json"]) == 0
    told = check("sweep_plan", json.loads(capsys.readouterr().out))
    assert (told["points"], told["engine_starts"]) == (3, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["smollm2-ngram"],
        ["smollm2-ngram", "--knob", "k"],
        ["smollm2-ngram", "--knob", "k=0"],
        ["smollm2-ngram", "--knob", "k=1", "--knob", "k=2"],
        ["smollm2-ngram", "--knob", "k=1", "--knob", "top_k=1", "--knob", "top_p=1"],
        ["nothing", "--knob", "k=1"],
        ["--resume", "nothing"],
    ],
)
def test_command_line_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1


async def test_a_file_of_prompts_is_read_once(host: Host, tmp_path: Path) -> None:
    """An uploaded file is deleted long before a sweep may end."""
    file = tmp_path / "prompts.txt"
    file.write_text("one\ntwo\n")
    made = case(attached("a", "http://127.0.0.1:1"), attached("b", "http://127.0.0.1:1"))
    measurement = made.measurement.model_copy(update={"prompts": str(file)})
    sweeping = host.sweep_run(sweep_over(made.model_copy(update={"measurement": measurement}), 1, 2))
    file.unlink()
    for point in sweeping.sweep.planned:
        sweeping._comparison(point, point.case.measurement).check()
