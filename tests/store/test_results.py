"""What the history says came out, by which it is filtered and sorted; what people add; deletion and backup."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlite_utils import Database
from support.finished_runs import done
from support.measured_run import measured_run
from support.stored_runs import run, saved
from support.sweep_run import made_sweep, save

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.store import History, search
from playground.store.migrations import migrations


def ids(history: History, **filters: object) -> list[str]:
    return [line.id for line in history.summaries(**filters)]  # type: ignore[arg-type]


def execute(config: Config, statement: str, *values: object) -> list[tuple[object, ...]]:
    with sqlite3.connect(config.db) as db:
        return list(db.execute(statement, values))


@pytest.fixture
def three(history: History, config: Config) -> History:
    """A race, a measured run and a sweep, one a day."""
    race, measured, sweep = done(), measured_run(), made_sweep("k=1,2,3")
    for number, record in enumerate((race, measured, sweep)):
        record.created_at = f"2026-01-0{number + 1}T00:00:00+00:00"
    saved(history, race)
    saved(history, measured)
    save(history, sweep)
    return history


def test_what_came_out_is_listed(three: History) -> None:
    sweep, measured, race = three.summaries()
    assert race.result.headline.verdict is None
    assert [round(rate or 0) for rate in race.result.headline.rates] == [20, 53]
    assert (race.result.machine, race.result.version) == ("a card", "0.32.0")
    headline = measured.result.headline
    assert headline.verdict == "faster"
    assert headline.interval is not None
    assert headline.speed_up is not None
    assert headline.interval[0] < headline.speed_up < headline.interval[1]
    assert sweep.result.headline.speed_up is not None


def test_the_last_result_of_each_preset_on_a_machine(three: History) -> None:
    again = measured_run()
    again.id, again.preset, again.machine = "later", "a", {"cpu": "a processor"}
    other = measured_run()
    other.id, other.preset, other.machine = "elsewhere", "a", {"cpu": "another"}
    earlier = measured_run()
    earlier.id, earlier.preset, earlier.machine = "earlier", "a", {"cpu": "a processor"}
    for record in (earlier, again, other):
        saved(three, record)
    while three.summarise():
        pass
    latest = three.latest_results({"cpu": "a processor"})
    assert {preset: saved_id for preset, (saved_id, _) in latest.items()} == {"a": "later"}
    assert latest["a"][1].verdict == "faster"
    three.delete("later")
    assert three.latest_results({"cpu": "a processor"})["a"][0] == "earlier"
    assert three.latest_results({}) == {}


def test_results_of_before_are_filled_in(three: History, config: Config) -> None:
    before = three.summaries()
    execute(config, "UPDATE entries SET summarised = 0, speed_up = NULL, rates = NULL, machine = NULL")
    execute(config, "UPDATE runs SET workload = '{}' WHERE id = ?", before[-1].id)
    while three.summarise():
        pass
    after = three.summaries()
    assert [line.result for line in after[:-1]] == [line.result for line in before[:-1]]
    assert after[-1].status == "unreadable"
    assert not execute(config, "SELECT 1 FROM entries WHERE summarised = 0")


def test_filters_and_orders(three: History) -> None:
    sweep, measured, race = ids(three)
    assert ids(three, verdict="faster", text="no such") == []
    assert measured in ids(three, verdict="faster")
    assert race not in ids(three, verdict="faster")
    assert ids(three, machine="a card") == [race]
    assert ids(three, machine="a card", model="target") == [race]
    assert ids(three, version="0.1") == []
    assert race not in ids(three, order="speed_up")
    assert set(ids(three, order="rate", model="m")) <= {sweep, measured, race}
    assert set(ids(three, order="rate")) >= {measured, race}
    assert ids(three, limit=1, offset=1) == [measured]
    assert three.values("machine")
    three.annotate(measured, star=True, tags=" nightly  100%_ ", note="x" * 9999)
    assert ids(three, starred=True) == ids(three, tag="nightly") == ids(three, tag="100%_") == [measured]
    assert ids(three, tag="night") == []
    assert three.result(measured).tags == "nightly 100%_"
    # A sweep is found by an answer of a point, and by what came out of the sweep.
    three.annotate(sweep, star=True, tags="", note="")
    while three.index():
        pass
    assert sweep in ids(three, starred=True, model="m")


def test_deletion_can_be_undone(three: History, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, measured, race = ids(three)
    while three.index():
        pass
    assert three.delete(sweep)
    assert three.delete(race)
    assert not three.delete("nowhere")
    assert ids(three) == [measured]
    assert three.undelete(sweep)
    assert ids(three) == [sweep, measured]
    assert not three.purge()
    monkeypatch.setattr("playground.store.removal.UNDO_S", -1.0)
    assert three.purge()
    assert not three.purge()
    assert not three.undelete(race)
    assert three.get(race) is None
    assert ids(three, model="m") == [sweep, measured]
    # The search index is as if it had never been there.
    for left in (sweep, measured):
        three.delete(left)
    while three.purge():
        pass
    tables = ("runs", "sides", "trials", "requests", "samples", "sweeps", "points", "entries", "entry_models")
    assert {table: execute(config, f"SELECT * FROM {table}") for table in tables} == {t: [] for t in tables}
    assert not execute(config, "SELECT rowid FROM texts WHERE texts MATCH 'the OR say'")
    execute(config, "INSERT INTO texts (texts) VALUES ('integrity-check')")


def test_a_run_under_way_is_not_deleted(history: History) -> None:
    saved(history, run(status="running"))
    assert not history.delete("r1")
    assert history.prune(before="2100-01-01") == 0
    assert ids(history) == ["r1"]


def test_pruning(three: History, config: Config) -> None:
    sweep, measured, race = ids(three)
    assert three.prune(before="2026-01-02T00:00:00+00:00") == 1
    assert ids(three) == [sweep, measured]
    three.annotate(sweep, star=True, tags="", note="")
    size = config.db.stat().st_size
    assert three.prune(most_bytes=1) == 1
    assert ids(three) == [sweep]
    assert config.db.stat().st_size < size
    assert three.sweep(sweep) is not None
    three.annotate(sweep, star=False, tags="", note="")
    assert three.prune(most_bytes=1) == 1
    assert not execute(config, "SELECT * FROM conversations")
    assert three.get(race) is None


def test_backup(three: History, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    three.backup(copy)
    assert ids(History(copy)) == ids(three)
    assert copy.stat().st_mode & 0o077 == 0
    for path in (copy, tmp_path / "none" / "copy.db"):
        with pytest.raises(InvalidInput, match=r"history\.no_backup"):
            three.backup(path)


def test_tags_follow_the_lines(three: History, config: Config) -> None:
    first, second = ids(three)[:2]
    three.annotate(first, star=False, tags="gpu  nightly gpu", note="")
    three.annotate(second, star=False, tags="nightly", note="")
    assert three.tags() == ["gpu", "nightly"]
    assert (ids(three, tag="nightly"), ids(three, tag="night")) == ([first, second], [])
    three.annotate(first, star=False, tags="cpu", note="")
    assert (three.tags(), ids(three, tag="nightly")) == (["cpu", "nightly"], [second])
    three.delete(first)
    assert three.tags() == ["nightly"]
    three.prune(before="2030-01-01")
    assert execute(config, "SELECT * FROM entry_tags") == []


def test_tags_of_before(config: Config) -> None:
    with sqlite3.connect(config.db) as db:
        migrations.apply(Database(db), stop_before="018_pages")
        db.execute("INSERT INTO entries (id, listed, tags, indexed) VALUES ('a', 'a', 'gpu nightly', 1)")
    assert History(config.db).tags() == ["gpu", "nightly"]


@pytest.mark.parametrize("order", ["rate", "speed_up"])
def test_far_pages_are_read_from_an_index_alone(three: History, config: Config, order: str) -> None:
    statements: list[str] = []
    with sqlite3.connect(config.db) as connection:
        connection.set_trace_callback(statements.append)
        search.listed(Database(connection), {"order": order, "machine": "x"}, 51, 50_000)  # type: ignore[typeddict-item]
        connection.set_trace_callback(None)
        [plan] = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statements[-1]}")]
    assert f"USING COVERING INDEX entries_by_{order} " in plan
