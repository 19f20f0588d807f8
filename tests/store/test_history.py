"""The history: shape, round trip, several writers, and what a killed process leaves."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.stored_runs import OLDEST, full_run, run, saved

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.evidence import OutputEvidence, Repeats, TopLogprobs
from playground.domain.record.run import Status, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Sampling
from playground.store import History
from playground.store.evidence import outputs_of, outputs_row
from playground.store.file import DatabaseFile


def test_round_trip_of_everything(history: History) -> None:
    made = saved(history, full_run())
    assert history.get("r1") == made


def test_settings_without_what_was_measured(history: History) -> None:
    """Read at once, however long the run was."""
    made = saved(history, full_run())
    bare = [replace(side, trials=[], samples=[]) for side in made.sides]
    assert history.settings("r1") == replace(made, sides=bare)
    assert history.settings("none") is None


def test_defaults_round_trip(history: History) -> None:
    made = saved(history, run())
    assert history.get("r1") == made
    assert history.get("none") is None


def test_seed_none_is_kept(history: History) -> None:
    """None is a choice of its own where the default is not None."""
    made = run()
    made.workload = made.workload.model_copy(update={"sampling": Sampling(seed=None)})
    found = history.get(saved(history, made).id)
    assert found is not None
    assert found.workload.sampling.seed is None


@pytest.mark.parametrize("status", ["running", "done", "stopped", "failed", "interrupted"])
def test_status(history: History, status: Status) -> None:
    saved(history, run(status=status))
    [summary] = history.summaries()
    assert summary.status == status


def test_a_request_saved_again_replaces_itself(history: History) -> None:
    made = saved(history, full_run())
    trial = made.sides[0].trials[0]
    trace = replace(trial.requests[1], ended=True, finish_reason="length")
    history.save_trial("r1", 0, trial, {1: trace})
    found = history.get("r1")
    assert found is not None
    assert found.sides[0].trials[0].requests == [trial.requests[0], trace]


def test_a_run_that_still_runs_shows_what_was_saved(history: History) -> None:
    """The samples come at the end; all else is there while it runs."""
    made = saved(history, replace(full_run(), status="running"))
    found = history.get("r1")
    assert found is not None
    assert [side.trials for side in found.sides] == [side.trials for side in made.sides]
    assert found.measurement == made.measurement


def test_a_run_that_can_not_be_written_is_at_least_ended(history: History) -> None:
    saved(history, run())
    problem = Message("run.not_saved", {"run": "r1"})
    history.give_up("r1", problem)
    found = history.get("r1")
    assert found is not None
    assert (found.status, found.problem) == ("failed", problem)


def test_a_reader_sees_one_moment(config: Config) -> None:
    """A run that is read while it is written would else have requests of a trial that was not there yet."""
    file = DatabaseFile(config.db)
    with file.reading() as db:
        counted = [db.table("entries").count]
        with file.writing() as other:
            other.conn.execute("INSERT INTO entries (id, listed) VALUES ('a run', 'a run')")
        counted.append(db.table("entries").count)
    assert counted == [0, 0]
    with file.reading() as db:
        assert db.table("entries").count == 1


def test_numbers_of_a_trial_that_broke_off_leave_nothing_behind(history: History) -> None:
    made = run()
    history.begin(made)
    request = RequestTrace(made.workload.conversation, ended=True)
    made.sides[0].trials = [Trial(requests=[request])]
    history.save_trial("r1", 0, made.sides[0].trials[0], {7: request})
    history.finish(made)
    found = history.get("r1")
    assert found is not None
    assert found.sides[0].requests == [request]


def test_finishing_writes_no_saved_request_again(history: History, config: Config) -> None:
    made = saved(history, replace(full_run(), status="running"))
    with sqlite3.connect(config.db) as db:
        for change in ("DELETE", "UPDATE", "INSERT"):
            body = "BEGIN SELECT RAISE(ABORT, 'written again'); END"
            db.execute(f"CREATE TRIGGER no_{change} BEFORE {change} ON requests {body}")
    finished = replace(made, status="done")
    history.finish(finished)
    assert history.get("r1") == finished


def test_finishing_writes_what_a_trial_could_not_save(history: History) -> None:
    made = saved(history, replace(full_run(), status="running"))
    trial = made.sides[0].trials[1]
    trial.requests = [RequestTrace(made.workload.conversation, sent_ms=0.1), *trial.requests]
    made.status = "failed"
    history.finish(made)
    assert history.get("r1") == made


# The database's shape


def shape(path: Path) -> list[tuple[str, ...]]:
    with sqlite3.connect(path) as db:
        return sorted(db.execute("SELECT name, type FROM sqlite_master WHERE sql IS NOT NULL").fetchall())


def test_blank_is_migrated_and_migration_is_idempotent(config: Config) -> None:
    made = saved(History(config.db), run())
    first = shape(config.db)
    assert {"runs", "sides", "requests", "samples"} <= {name for name, _ in first}
    with sqlite3.connect(config.db) as db:
        applied = db.execute("SELECT * FROM _sqlite_migrations").fetchall()
    assert History(config.db).get("r1") == made
    assert shape(config.db) == first
    with sqlite3.connect(config.db) as db:
        assert db.execute("SELECT * FROM _sqlite_migrations").fetchall() == applied
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_oldest_database_opens(config: Config, tmp_path: Path) -> None:
    with sqlite3.connect(config.db) as db:
        db.executescript(OLDEST)
    history = History(config.db)
    found = history.get("r0")
    assert found is not None
    assert found.workload.prompt == "old"
    [trial] = found.sides[0].trials
    assert trial.complete
    assert trial.before == Counters(running=0)
    [trace] = found.sides[0].requests
    assert trace.chunks == [Chunk(10.0, 1, "a", (1,)), Chunk(20.0, 1, "b", (2,))]
    assert found.sides[0].samples == [Sample(500.0, Counters(running=1))]
    saved(history, run())
    assert [summary.id for summary in history.summaries()] == ["r1", "r0"]
    # Migrated or new, the shape is the same.
    History(tmp_path / "new.db").open()
    assert shape(config.db) == shape(tmp_path / "new.db")


def test_folder_is_made(tmp_path: Path) -> None:
    assert History(tmp_path / "a" / "b" / "h.db").summaries() == []


# Several processes

WRITER = """
import sys
from pathlib import Path
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Workload
from playground.store import History

name, count = sys.argv[2], int(sys.argv[3])
sys.stdin.read(1)
history = History(Path(sys.argv[1]))
for number in range(count):
    workload = Workload(prompt="x")
    side = SideRecord("A", EngineSettings(target="t"))
    run = Run(f"{name}-{number}", "2026-11-29", "race", workload, [side])
    history.begin(run)
    trace = RequestTrace(workload.conversation, chunks=[Chunk(1.0, 1, "done", (1,))], ended=True)
    side.trials = [Trial(requests=[trace])]
    history.save_trial(run.id, 0, side.trials[0], {0: side.requests[0]})
    side.samples = [Sample(float(ms), Counters(running=1)) for ms in range(5)]
    if name != "killed":
        run.status = "done"
        history.finish(run)
print("written", flush=True)
sys.stdin.read()
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=0
    )


def test_three_writers_at_once(config: Config) -> None:
    """They open a blank database together, too: only one of them migrates it."""
    writers = [writer(config.db, name, 15) for name in "abc"]
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("x")
    errors = [process.communicate(timeout=60)[1] for process in writers]
    assert errors == ["", "", ""]
    found = History(config.db).summaries()
    assert len(found) == 45
    assert {summary.status for summary in found} == {"done"}


def test_killed_writer_loses_no_finished_request(config: Config) -> None:
    process = writer(config.db, "killed", 2)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("x")
    assert process.stdout.readline() == "written\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    history = History(config.db)
    for number in range(2):
        found = history.get(f"killed-{number}")
        assert found is not None
        assert found.status == "running"
        assert found.sides[0].requests[0].output_text == "done"
    assert history.mark_interrupted() == 2
    assert {summary.status for summary in history.summaries()} == {"interrupted"}
    assert history.mark_interrupted() == 0


def test_a_failed_write_changes_nothing(history: History) -> None:
    saved(history, run())
    broken = run("r2")
    broken.sides[1].label = None  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match="NOT NULL"):
        history.begin(broken)
    assert [summary.id for summary in history.summaries()] == ["r1"]


# Listing


def test_newest_first_and_what_a_line_tells(history: History) -> None:
    saved(history, run("r1", created_at="2026-11-01T00:00:00+00:00", preset="p"))
    saved(history, run("r2", created_at="2026-11-02T00:00:00+00:00", preset="q"))
    saved(history, run("r3", created_at="2026-11-03T00:00:00+00:00"))
    found = history.summaries()
    assert [summary.id for summary in found] == ["r3", "r2", "r1"]
    assert found[2].labels == ("A", "B")
    assert found[2].models == ("owner/target", "owner/draft_1")
    assert (found[2].preset, found[2].prompt) == ("p", "hello")
    assert history.values("preset") == ["p", "q"]
    assert [summary.id for summary in history.summaries(limit=1)] == ["r3"]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["r3", "r2", "r1"]),
        ({"text": "hello"}, ["r1"]),
        ({"text": "HELLO"}, ["r1"]),
        # In an answer.
        ({"text": "clockmaker"}, ["r2"]),
        # Nothing is a pattern: % and _ mean themselves.
        ({"text": "100%"}, ["r3"]),
        ({"text": "%"}, ["r3"]),
        ({"text": "100_"}, []),
        ({"text": "a_b"}, ["r3"]),
        ({"text": "h_llo"}, []),
        ({"text": "\\"}, ["r3"]),
        ({"text": "汉"}, ["r2"]),
        ({"text": "'; DROP TABLE runs; --"}, []),
        # Words of the settings are no words of the prompt.
        ({"text": "max_tokens"}, []),
        ({"model": "owner/target"}, ["r3", "r2", "r1"]),
        ({"model": "draft_1"}, ["r3", "r2", "r1"]),
        ({"model": "draftx1"}, []),
        ({"model": "ngram-model"}, ["r2"]),
        # A knob's name is no model.
        ({"model": "speculation"}, []),
        ({"preset": "p"}, ["r1"]),
        ({"preset": "p", "text": "clockmaker"}, []),
    ],
)
def test_filters(history: History, filters: dict[str, str], ids: list[str]) -> None:
    saved(history, run("r1", prompt="Hello you", created_at="2026-11-01", preset="p"))
    second = run("r2", prompt="Write 汉字", created_at="2026-11-02")
    second.sides[0].settings = EngineSettings(target="ngram-model")
    answer = RequestTrace(second.workload.conversation, chunks=[Chunk(1.0, 1, "an old clockmaker")])
    second.sides[0].trials = [Trial(requests=[answer])]
    saved(history, second)
    saved(history, run("r3", prompt='100% of a_b \\ "quoted"\nline', created_at="2026-11-03"))
    assert [summary.id for summary in history.summaries(**filters)] == ids


@pytest.mark.parametrize("text", ['"quoted"', "b \\ ", 'quoted"\nline'])
def test_text_as_it_was_typed_is_found(history: History, text: str) -> None:
    """The database keeps prompts as JSON; who searches does not know."""
    saved(history, run("r1", prompt='100% of a_b \\ "quoted"\nline'))
    assert [summary.id for summary in history.summaries(text=text)] == ["r1"]


@pytest.mark.parametrize(
    "evidence",
    [
        OutputEvidence(),
        OutputEvidence(logprobs=(TopLogprobs(1, 2, 3, {49151: -0.125, 0: -9999.0}), TopLogprobs(0, 2, 3, {}))),
        OutputEvidence(repeats=(Repeats(0, ((1, 2), None, ())), Repeats(1, ()))),
    ],
)
def test_output_evidence_comes_back(evidence: OutputEvidence) -> None:
    assert outputs_of(outputs_row(evidence)) == evidence
