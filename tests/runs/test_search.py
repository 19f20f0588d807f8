"""A search finds what the grid would with a third of its points, goes on where it was, and outlives failures."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from support.measured_run import measured_run
from support.races import SIDES, workload
from support.schema import check
from support.sweep_run import base_case
from support.waiting import until

from benchmarks.search import WITHIN, searched
from benchmarks.surfaces import Surface, built
from playground.cli.main import main
from playground.domain.errors import InvalidInput
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import MIN_ROUNDS, Measurement
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.stats.rounds import whole_rounds
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.budget import BESIDE, SHARES, fitting
from playground.domain.sweep.knobs import Case
from playground.domain.sweep.order import engines_of
from playground.domain.sweep.plan import Knob, Point, SweepPlan
from playground.domain.sweep.record import Sweep
from playground.domain.sweep.score import scores
from playground.report.charts.sweep import sweep_charts
from playground.report.sweep import conclusions_of, plan_document, sweep_document
from playground.report.sweep.table import point_table
from playground.runs.host import Host
from playground.runs.search import BETTER, PATIENCE, Axis, Search, enough
from playground.runs.sweep import SweepRun, estimate, new_sweep

pytestmark = pytest.mark.slow

# Instead of three times the rounds of a first look.
REPEAT_ROUNDS = 2
SURFACES = {surface.name: surface for surface in built()}
FEW = Measurement(
    profile=ConcurrencyProfile(requests=2), max_rounds=20, target_width=0.005, budget_s=1.5, check_outputs=True
)


def search_over(*knobs: Knob, case: Case | None = None, budget_s: float = 600) -> Sweep:
    made = case or Case(sides=SIDES, workload=workload(6), measurement=FEW)
    return new_sweep(SweepPlan(knobs=knobs, search=True, budget_s=budget_s), made)


def path(surface: Surface, search: Search, limit: int = 1000) -> list[Point]:
    """Points as a search takes them, told without noise."""
    taken: list[Point] = []
    while len(taken) < limit and (point := search.take(Counter())) is not None:
        search.tell(point, surface.logs[point.number])
        taken.append(point)
    return taken


@pytest.mark.parametrize("name", SURFACES)
def test_near_the_best_for_a_third(name: str) -> None:
    share, gap = searched(SURFACES[name], noise=0.005, seed=0)
    assert share <= 1 / 3
    assert gap <= WITHIN


def test_it_goes_on_where_it_was() -> None:
    """What was told before is all that counts: the rest of the way is the same."""
    surface = SURFACES["k x lookup, 4"]
    whole = path(surface, Search(surface.sweep()))
    assert len(whole) > 6
    again = Search(surface.sweep())
    for point in whole[:5]:
        again.tell(point, surface.logs[point.number])
    assert [point.number for point in path(surface, again)] == [point.number for point in whole[5:]]


def test_it_starts_from_the_settings_as_they_are_and_turns_one_knob_at_a_time() -> None:
    surface = SURFACES["k x lookup, 2"]
    first = [point.values for point in path(surface, Search(surface.sweep()), limit=3)]
    assert first == [(5, 2), (1, 2), (5, 4)]
    # Where those are not among the points: from the middle.
    batching = SURFACES["batching"]
    assert path(batching, Search(batching.sweep()), limit=1)[0].values == (64, 4096)


def test_a_failed_point_does_not_end_it() -> None:
    surface = SURFACES["k x lookup, 4"]
    search, taken = Search(surface.sweep()), list[int]()
    while (point := search.take(Counter())) is not None:
        taken.append(point.number)
        search.tell(point, None if point.values[0] in (1, 5) else surface.logs[point.number])
    again = surface.sweep().plan.repeats
    assert len(set(taken)) == len(taken) - again > 5
    assert set(taken[-again:]) < set(taken[:-again])
    assert any(surface.sweep().points[number].values[0] not in (1, 5) for number in taken)


def test_where_all_fail_it_ends() -> None:
    surface = SURFACES["k x lookup, 4"]
    search, taken = Search(surface.sweep()), 0
    while (point := search.take(Counter())) is not None:
        search.tell(point, None)
        taken += 1
    assert taken == surface.sweep().plan.most_explored


def told(search: Search, worth: float) -> int:
    """The number of the point that it takes, and is told to be worth so much."""
    point = search.take(Counter())
    assert point is not None
    search.tell(point, worth)
    return point.number


def to_its_repeats(surface: Surface, **worths: float) -> tuple[Search, list[int]]:
    """A search that has taken all new points; the first of them are told about these worths, the others -1."""
    search, lots = Search(surface.sweep()), iter(worths.values())
    most = surface.sweep().plan.most_explored
    return search, [told(search, next(lots, -1.0) - 0.001 * number) for number in range(1, most + 1)]


def test_those_that_may_be_the_best_are_repeated() -> None:
    surface = SURFACES["k x lookup, 4"]
    search, taken = to_its_repeats(surface, a=0.5, b=0.48, c=0.49, d=0.3)
    assert (search.most, len(search.candidates)) == (2, 2)
    repeated = [search.take(Counter()) for _ in range(3)]
    assert [point and point.number for point in repeated] == [taken[0], taken[2], None]


def test_of_two_the_one_whose_engine_runs_comes_first() -> None:
    surface = SURFACES["k x lookup, 4"]
    search, taken = to_its_repeats(surface, a=0.5, b=0.48)
    running = engines_of(surface.sweep().planned[taken[1]].case)
    repeated = search.take(running)
    assert repeated is not None
    assert repeated.number == taken[1]


def test_where_one_is_far_ahead_none_is_repeated() -> None:
    search, _ = to_its_repeats(SURFACES["k x lookup, 4"], a=0.5, b=0.4)
    assert (search.most, search.take(Counter())) == (0, None)


def test_the_only_one_left_near_the_best_is_repeated_after_another_fell_behind() -> None:
    search, taken = to_its_repeats(SURFACES["k x lookup, 4"], a=0.5, b=0.47)
    assert [told(search, 0.3), told(search, 0.3)] == taken[:2]


def test_one_that_turns_out_worse_makes_room_for_the_next() -> None:
    search, taken = to_its_repeats(SURFACES["k x lookup, 4"], a=0.5, b=0.49, c=0.48)
    assert [told(search, 0.47), told(search, 0.46)] == taken[:2]
    assert search.take(Counter()) is None


def test_enough() -> None:
    assert not enough([], 1)
    assert not enough([0.0] * PATIENCE, 1)
    assert enough([0.0] * (PATIENCE + 1), 1)
    assert not enough([0.0] * (PATIENCE + 1), 2)
    assert enough([0.0, *[None] * PATIENCE], 1)
    assert not enough([None] * 50, 1)
    assert not enough([0.0] * PATIENCE + [2 * BETTER], 1)
    assert enough([0.0] * PATIENCE + [BETTER / 2], 1)


def test_numbers_lie_by_their_logs_and_words_apart() -> None:
    doubling = Axis.of(Knob(name="k", values=(8, 1, 4, 2)))
    assert [
        doubling.distance(doubling.places[1], doubling.places[value]) for value in (1, 2, 4, 8)
    ] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert Axis.of(Knob(name="temperature", values=(0, 0.5, 1))).distance(0, 0.5) == 0.5
    for values in (("a", "b", "c"), (True, False), (None, 1)):
        words = Axis.of(Knob(name="dtype", values=values))
        assert {words.distance(0, other) for other in range(1, len(values))} == {1}
    assert Axis.of(Knob(name="k", values=(3,))).distance(0, 0) == 0


@pytest.mark.parametrize(
    ("sizes", "most"), [((2,), 2), ((4,), 3), ((12,), 4), ((8, 2), 5), ((4, 4, 4), 21), ((4, 4, 4, 4), 85)]
)
def test_at_most_a_third(sizes: tuple[int, ...], most: int) -> None:
    names = ("max_num_seqs", "max_num_batched_tokens", "block_size", "max_model_len")
    knobs = tuple(
        Knob(name=name, values=tuple(range(64, 64 + size))) for name, size in zip(names, sizes, strict=False)
    )
    assert SweepPlan(knobs=knobs, search=True).most_points == most


def test_more_than_two_knobs_need_a_search() -> None:
    knobs = tuple(Knob(name=name, values=(1,)) for name in ("k", "prompt_lookup_min", "max_num_seqs"))
    assert SweepPlan(knobs=knobs, search=True).knobs == knobs
    with pytest.raises(ValueError, match="fewer_knobs"):
        SweepPlan(knobs=knobs)


def test_a_circumstance_is_not_searched() -> None:
    with pytest.raises(InvalidInput) as caught:
        search_over(Knob(name="k", values=(1, 2)), Knob(name="concurrency", values=(1, 2)))
    assert caught.value.message_id == "search.circumstance"


def two_points(knob: Knob) -> Sweep:
    """Side "quick" takes half of the other's time at the first point, and the same at the second."""
    sides = tuple(Side(label=label, engine=EngineSettings(target="m")) for label in ("plain", "quick"))
    sweep = search_over(knob, case=Case(sides=sides, workload=workload(), measurement=FEW))
    for point in sweep.points:
        point.run = measured_run()
    slow = sweep.points[1].run
    assert slow is not None
    slow.sides[1].trials = [
        type(trial)(trial.round, trial.started_ms, other.requests, complete=True)
        for trial, other in zip(slow.sides[1].trials, slow.sides[0].trials, strict=True)
    ]
    return sweep


@pytest.mark.parametrize("side", ["B", "quick"])
def test_a_side_that_stays_is_what_the_others_are_compared_with(side: str) -> None:
    sweep = two_points(Knob(name="max_num_seqs", values=(1, 2), side=side))
    [fast], [slow] = (scores(sweep, point) for point in SweepAnalysis.of(sweep).points)
    assert fast.side.verdict is not None
    assert fast.side.verdict.speed_up is not None
    assert fast.log == pytest.approx(0.69, abs=0.05)
    assert slow.log == pytest.approx(0, abs=0.01)
    best = SweepAnalysis.of(sweep).recommendation
    assert (best.values, best.side) == ((1,), "quick")


def test_where_all_sides_turn_each_is_worth_what_it_reached() -> None:
    sweep = two_points(Knob(name="max_num_seqs", values=(1, 2)))
    fast, plain = scores(sweep, SweepAnalysis.of(sweep).points[0])
    assert (fast.side.label, plain.side.label) == ("quick", "plain")
    assert fast.log - plain.log == pytest.approx(0.69, abs=0.05)
    assert fast.interval is not None
    assert fast.interval[0] < fast.log < fast.interval[1]


def test_three_knobs_are_shown_without_a_map() -> None:
    knobs = (Knob(name=name, values=(1, 2), side="quick") for name in ("k", "prompt_lookup_min", "max_num_seqs"))
    sweep = search_over(*knobs, case=base_case())
    for point in sweep.points[:2]:
        point.run = measured_run()
    assert len(point_table(SweepAnalysis.of(sweep), "en")[1]) == 2
    assert sweep_charts(SweepAnalysis.of(sweep), "en")
    check("sweep", sweep_document(SweepAnalysis.of(sweep)))


async def swept(host: Host, sweep: Sweep, stop_after: int | None = None) -> Sweep:
    sweeping = host.sweep_run(sweep)
    await host.start(sweeping, "a test")
    if stop_after is not None:
        await until(lambda: sum(point.settled for point in sweep.points) >= stop_after, within_s=60)
        sweeping.stop()
    await until(lambda: sweeping.finished, within_s=120)
    return kept(host, sweep)


def kept(host: Host, sweep: Sweep) -> Sweep:
    found = host.history.sweep(sweep.id)
    assert found is not None
    return found


async def test_a_search_is_kept_and_goes_on(host: Host) -> None:
    """With stand-ins for engines."""
    sweep = search_over(Knob(name="k", values=tuple(range(1, 10))))
    stopped = await swept(host, sweep, stop_after=1)
    assert (stopped.status, stopped.plan.search) == ("stopped", True)
    before = {point.number: point.run.id for point in stopped.points if point.settled and point.run}
    assert stopped.remaining == 3 - len(before) > 0
    done = await swept(host, stopped)
    assert (done.status, done.remaining) == ("done", 0)
    runs = {point.number: point.run for point in done.points if point.settled and point.run}
    assert len(runs) == 3
    assert all(runs[number].id == run for number, run in before.items())
    assert runs.keys() >= {4, 0}
    for run in runs.values():
        assert run.measurement is not None
        assert (run.measurement.max_rounds, run.measurement.check_outputs) == (MIN_ROUNDS, False)
    document = check("sweep", sweep_document(SweepAnalysis.of(done)))
    assert document["search"] is True
    assert "search.measured" in {sentence.message_id for sentence in conclusions_of(SweepAnalysis.of(done))}


@pytest.mark.alone
async def test_a_look_that_was_cut_off_takes_nothing_away_and_is_repeated(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For want of time for a single round, then for as many rounds as before, then by Stop."""
    # Half of a small search are repetitions, of whichever points.
    monkeypatch.setattr("playground.runs.search.NEAR", 10.0)
    monkeypatch.setattr("playground.domain.sweep.plan.REPEAT_SHARE", 2)
    monkeypatch.setattr("playground.runs.sweep.REPEAT_ROUNDS", REPEAT_ROUNDS)
    sweep = search_over(Knob(name="k", values=tuple(range(1, 13))))
    plenty = SweepRun._share_s
    for share_s in (0.0, 0.001):

        def little(sweeping: SweepRun, point: Point, given_s: float = share_s) -> float:
            return given_s if sweeping.sweep.points[point.number].settled else plenty(sweeping, point)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SweepRun, "_share_s", little)
            sweep = await swept(host, sweep)
        assert sweep.problem is not None
        assert (sweep.status, sweep.problem.message_id) == ("stopped", "sweep.budget_spent")
        assert (sweep.remaining, repeats_of(sweep), sweep.problem.params["left"]) == (2, 0, 2)
        first = {point.number: point.run for point in sweep.points if point.settled and point.run}
        assert len(first) == 2
        assert min(map(whole_rounds, first.values())) > 1

    sweeping = host.sweep_run(sweep)
    await host.start(sweeping, "a test")

    def in_the_last_look() -> bool:
        run = sweeping.current and sweeping.current.run
        return run is not None and run.status == "running" and bool(run.sides[0].trials) and repeats_of(sweep) == 1

    await until(in_the_last_look, within_s=120)
    sweeping.stop()
    await until(lambda: sweeping.finished, within_s=60)
    stopped = kept(host, sweep)
    assert (stopped.status, stopped.remaining, repeats_of(stopped)) == ("stopped", 1, 1)
    [other] = [point for point in stopped.points if point.settled and not stopped.repeated(point)]
    assert other.run == first[other.number]
    done = await swept(host, stopped)
    assert (done.status, done.remaining, repeats_of(done), done.plan.repeats) == ("done", 0, 2, 2)
    assert sum(point.settled for point in done.points) == done.plan.most_explored == 2
    for point in filter(done.repeated, done.points):
        assert point.run is not None
        assert point.run.measurement is not None
        plan = point.run.measurement
        assert (plan.max_rounds, plan.target_width, plan.check_outputs) == (
            REPEAT_ROUNDS * MIN_ROUNDS,
            0.005,
            False,
        )
    # One that goes on from there has nothing to do.
    assert Search(done).most == 0


async def test_a_stop_while_the_last_point_is_chosen_leaves_it_to_do(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweep = search_over(Knob(name="k", values=(1, 2)))
    sweeping, taking = host.sweep_run(sweep), Search.take

    def take(search: Search, running: Counter[EngineSettings]) -> Point | None:
        if search.most == 1:
            # As the page does: in the event loop, which hears of it before what is taken here.
            assert host.loop is not None
            host.loop.call_soon_threadsafe(sweeping.stop)
        return taking(search, running)

    monkeypatch.setattr(Search, "take", take)
    await host.start(sweeping, "a test")
    await until(lambda: sweeping.finished, within_s=60)
    assert (sweep.status, sweep.remaining) == ("stopped", 1)


def test_points_cut_short_are_not_learned_from_and_left_to_do() -> None:
    """A search in which no point had the time for six rounds has everything to do."""
    sweep = search_over(Knob(name="k", values=(1, 2, 3, 4, 5, 6)))
    run = measured_run()
    assert run.measurement is not None
    for side in run.sides:
        del side.trials[2:]
    run.measurement = run.measurement.model_copy(update={"budget_s": FEW.budget_s / 2})
    sweep.status, sweep.points[0].run = "stopped", run
    assert (sweep.remaining, Search(sweep).most) == (3, 3)
    sweep.points[0].run = measured_run()
    assert (sweep.remaining, Search(sweep).most) == (2, 2)


def test_a_search_gives_its_first_points_time_enough() -> None:
    """Many short-changed points tell less than a few whole ones."""
    plan = search_over(Knob(name="max_num_seqs", values=tuple(range(1, 61))), budget_s=800).plan
    grid = plan.model_copy(update={"search": False})
    assert fitting(plan, 800, 20, 0) == (20, 800 / SHARES / (1 + BESIDE))
    assert fitting(grid, 800, 20, 0) == (20, 800 / 20 / (1 + BESIDE))


def repeats_of(sweep: Sweep) -> int:
    """How many repetitions have a result."""
    return sum(map(sweep.repeated, sweep.points))


async def test_an_engine_that_does_not_start_does_not_end_it(host: Host) -> None:
    (host.config.models / "other").symlink_to(host.config.models / "model")
    sweep = search_over(Knob(name="target", values=("model", "gone", "other"), side="B"))
    done = await swept(host, sweep)
    assert [point.run and point.run.status for point in done.points] == ["done", "failed", "done"]
    assert done.status == "done"


def test_the_estimate_is_of_what_a_search_measures_at_most(host: Host) -> None:
    knobs = (Knob(name="max_num_seqs", values=(1, 2, 3, 4), side="A"), Knob(name="k", values=(1, 2, 3), side="B"))
    case = Case(sides=SIDES, workload=workload(), measurement=Measurement())
    told = estimate(host.history, search_over(*knobs, case=case), "cpu")
    assert (told.points, told.engine_starts) == (4, 8)
    fixed_first = estimate(host.history, search_over(knobs[1], case=case), "cpu")
    assert (fixed_first.points, fixed_first.engine_starts) == (3, 4)
    assert told.total_s <= 600
    check("sweep_plan", plan_document(told))


def test_command_line(fake_runtime: None, capsys: pytest.CaptureFixture[str]) -> None:
    knobs = ["--knob", "k=1..8", "--knob", "prompt_lookup_min=1,2", "--knob", "B.max_num_seqs=2,4"]
    assert main(["sweep", "smollm2-ngram", *knobs, "--search", "--plan", "--json"]) == 0
    assert check("sweep_plan", json.loads(capsys.readouterr().out))["points"] == 10


@pytest.mark.parametrize("knobs", [["concurrency=1,2"], ["k=1", "k=1"], ["nonsense=1"]])
def test_command_line_bad_input(knobs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    given = [argument for knob in knobs for argument in ("--knob", knob)]
    assert main(["sweep", "smollm2-ngram", *given, "--search"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1


def test_a_knob_of_one_side_only_starts_one_engine_a_point() -> None:
    knobs = Knobs(max_num_seqs=2)
    case = Case(
        sides=(SIDES[0], Side(label="B", engine=EngineSettings(target="model", knobs=knobs))),
        workload=workload(),
        measurement=FEW,
    )
    search = Search(search_over(Knob(name="max_num_seqs", values=(1, 2, 4, 8), side="B"), case=case))
    assert search.starts(Counter()) == 1 + 3
