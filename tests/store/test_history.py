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

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.evidence import AccuracyEvidence, OutputEvidence, Repeats, Task, TopLogprobs
from playground.domain.record.run import Run, SideRecord, Status, Trial
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.load_profile import RateProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel, Ngram
from playground.domain.spec.workload import ChatMessage, Limits, Sampling, Workload
from playground.store import History
from playground.store.evidence import outputs_of, outputs_row
from playground.store.file import DatabaseFile

# The first released shape, as it stands in people's files. Never change it: later migrations must open it.
OLDEST = """
CREATE TABLE "_sqlite_migrations" (
  "id" INTEGER PRIMARY KEY, "migration_set" TEXT, "name" TEXT, "applied_at" TEXT);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name" ON "_sqlite_migrations" ("migration_set", "name");
INSERT INTO "_sqlite_migrations" VALUES (1, 'playground', '001_history', '2026-11-29 19:24:39.967114+00:00');
CREATE TABLE "runs" ("id" TEXT PRIMARY KEY, "created_at" TEXT NOT NULL, "mode" TEXT NOT NULL,
  "status" TEXT NOT NULL, "preset" TEXT, "seed" INTEGER NOT NULL, "workload" TEXT NOT NULL,
  "machine" TEXT NOT NULL, "problem" TEXT);
CREATE TABLE "sides" ("run_id" TEXT REFERENCES "runs"("id"), "position" INTEGER, "label" TEXT NOT NULL,
  "settings" TEXT NOT NULL, "command" TEXT, "runtime_version" TEXT, "device" TEXT, "placement" TEXT,
  "contended" INTEGER, "before" TEXT, "after" TEXT, "problem" TEXT, "log_tail" TEXT,
  PRIMARY KEY ("run_id", "position"));
CREATE TABLE "requests" ("run_id" TEXT REFERENCES "runs"("id"), "position" INTEGER, "number" INTEGER,
  "sent_ms" REAL, "conversation" TEXT NOT NULL, "output_text" TEXT NOT NULL, "token_ids" TEXT,
  "chunks" TEXT NOT NULL, "finish_reason" TEXT, "prompt_tokens" INTEGER, "output_tokens" INTEGER,
  "steps" TEXT, "problem" TEXT, "ended" INTEGER, PRIMARY KEY ("run_id", "position", "number"));
CREATE TABLE "samples" ("run_id" TEXT REFERENCES "runs"("id"), "position" INTEGER, "ms" REAL,
  "counters" TEXT NOT NULL, PRIMARY KEY ("run_id", "position", "ms"));
CREATE INDEX "idx_runs_created_at" ON "runs" ("created_at");
INSERT INTO "runs" VALUES ('r0', '2026-01-01T00:00:00+00:00', 'race', 'done', NULL, 0, '{"prompt":"old"}', '{}',
  NULL);
INSERT INTO "sides" VALUES ('r0', 0, 'A', '{"target":"t"}', '', NULL, NULL, '', 1, '{"running":0}', NULL, NULL,
  NULL);
INSERT INTO "requests" VALUES ('r0', 0, 0, 0.5, '[{"role":"user","content":"old"}]', 'ab', '[1,2]',
  '[[10.0,1,"a"],[20.0,1,"b"]]', 'stop', 3, 2, NULL, NULL, 1);
INSERT INTO "samples" VALUES ('r0', 0, 500.0, '{"running":1}');
"""


@pytest.fixture
def history(config: Config) -> History:
    return History(config.db)


def run(run_id: str = "r1", *, prompt: str = "hello", created_at: str = "", **fields: object) -> Run:
    return Run(
        id=run_id,
        created_at=created_at or "2026-11-29T18:00:00+00:00",
        mode="race",
        workload=Workload(prompt=prompt),
        sides=[
            SideRecord("A", EngineSettings(target="owner/target")),
            SideRecord("B", EngineSettings(target="owner/target", speculation=DraftModel(model="owner/draft_1"))),
        ],
        **fields,
    )


def saved(history: History, made: Run) -> Run:
    """Through the calls of a real run; a run that is over is finished."""
    history.begin(made)
    for position, side in enumerate(made.sides):
        for trial in side.trials:
            history.save_trial(made.id, position, trial, dict(enumerate(trial.requests)))
    if made.status != "running":
        history.finish(made)
    return made


def full_run() -> Run:
    conversation = (
        ChatMessage(role="system", content="Sei kurz."),
        ChatMessage(role="user", content='汉字 🙂 "x" \\ %_'),
    )
    whole = RequestTrace(
        conversation,
        sent_ms=0.25,
        chunks=[Chunk(100.125, 1, "汉", (7,)), Chunk(150.5, 3, "字 🙂\n", (8, 9, 10)), Chunk(151, 1, "", (11,))],
        finish_reason="stop",
        prompt_tokens=12,
        output_tokens=5,
        steps=StepArrays((2, 0), (5, 5)),
        ended=True,
    )
    cut = RequestTrace(
        conversation,
        sent_ms=0.5,
        chunks=[Chunk(90.0, None, "no ids")],
        problem=Message("stream.cut", {"detail": "", "seconds": 1.5, "count": 2, "flag": True, "none": None}),
        ended=True,
    )
    going = RequestTrace(conversation, chunks=[Chunk(9.0, 2, "ab")])
    counters = Counters(1, 0, 0.5, 10, 50, 20, (10, 6, 4, 0, 0), 96, 3)
    first = SideRecord(
        "A",
        EngineSettings(
            runtime="new",
            target="owner/target",
            speculation=Ngram(num_speculative_tokens=3, num_speculative_tokens_per_batch_size=((1, 4, 3),)),
            knobs=Knobs(enforce_eager=False, gpu_memory_utilization=0.5, seed=0),
            trust_remote_code=True,
            extra_flags=("--x", "a b"),
        ),
        command="X=1 python -m vllm",
        runtime_version="0.32.0",
        device="cpu",
        placement="CPU 0",
        contended=False,
        trials=[
            Trial(requests=[whole, going], before=Counters(running=0, waiting=0), after=counters, complete=True),
            Trial(round=1, started_ms=2000.5, requests=[going]),
        ],
        samples=[Sample(0.5, Counters(running=1)), Sample(500.25, counters)],
        path=EnginePath(model_runner="V2", async_scheduling=False, cudagraph_sizes=(1, 2), kernels=("A",)),
    )
    second = SideRecord(
        "B",
        EngineSettings(target="t"),
        trials=[Trial(requests=[cut])],
        problem=Message("failure.killed", {"code": 137, "log": "/s/e.log"}),
        log_tail=["first", "last 汉"],
    )
    sampling = Sampling(
        max_tokens=5, temperature=0.7, top_p=0.9, top_k=4, seed=None, stop=("a", "b"), ignore_eos=True
    )
    return Run(
        id="r1",
        created_at="2026-11-29T18:00:00+08:00",
        mode="measured",
        measurement=Measurement(
            prompts=SyntheticPrompts(input_tokens=64),
            profile=RateProfile(requests_per_s=2.5, duration_s=9),
            limits=Limits(ttft_ms=200),
        ),
        workload=Workload(prompt="汉字", system="s", turns=conversation, sampling=sampling, objective="ttft"),
        sides=[first, second],
        preset="smollm2-ngram",
        status="failed",
        machine={"cpu": "x", "cores": 2, "gpus": [{"name": "H200"}], "native_bf16": False},
        seed=7,
        outputs=OutputEvidence((TopLogprobs(1, 0, 3, {5: -0.5, 6: -1.0}),), (Repeats(0, ((1, 2), None)),)),
        accuracy=AccuracyEvidence((Task("汉字?", ("字", "b")), Task("q", ("a",))), (("字", None), ("", " x\n"))),
        problem=Message("run.side_failed", {"side": "B", "cause": Message("failure.killed", {"code": 137})}),
    )


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
