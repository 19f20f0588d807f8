"""What this version can't read, and databases that can't be used: each is said, and the rest goes on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from support.stored_runs import answered, run, saved
from support.sweep_run import made_sweep, save

from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError, WorkFailed
from playground.domain.sweep.record import Sweep
from playground.i18n import say_message
from playground.report.exports.files import exported
from playground.store import History, file

# What a newer version may have written, or a fault of the disk left.
BROKEN = {
    "a field of a newer version": 'UPDATE runs SET workload = \'{"prompt": "x", "new": 1}\' WHERE id = \'r2\'',
    "no JSON": "UPDATE runs SET workload = '{\"prompt' WHERE id = 'r2'",
    "an unknown status": "UPDATE runs SET status = 'paused' WHERE id = 'r2'",
    "an unknown mode": "UPDATE runs SET mode = 'chat' WHERE id = 'r2'",
    "an unknown method": 'UPDATE sides SET settings = \'{"target": "t", "speculation": {"method": "new"}}\''
    " WHERE run_id = 'r2'",
    "bytes": "UPDATE runs SET workload = x'ff00' WHERE id = 'r2'",
}


def execute(config: Config, statement: str) -> None:
    with sqlite3.connect(config.db) as db:
        assert db.execute(statement).rowcount
    db.close()


# Bytes in a column of text: as no text at all, and as a text that is not UTF-8.
BYTES = ("x'ff00'", "CAST(x'ff00' AS TEXT)")
COLUMNS = ("runs.created_at", "runs.preset", "runs.workload", "sides.label", "sides.settings")


@pytest.mark.parametrize("column", [*COLUMNS, "requests.output_text", "entries.listed"])
@pytest.mark.parametrize("content", BYTES)
def test_bytes_in_a_row_leave_the_others_readable(
    history: History, config: Config, column: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2, 3):
        saved(history, answered(f"r{number}", "an answer", created_at=f"2026-11-0{number}"))
    table, name = column.split(".")
    key = "id" if table in ("runs", "entries") else "run_id"
    execute(config, f"UPDATE {table} SET {name} = {content} WHERE {key} = 'r2'")
    for _ in ("before it is indexed", "after"):
        assert {"r1", "r3"} <= {line.id for line in history.summaries()}
        assert {"r1", "r3"} <= {line.id for line in history.summaries(model="target")}
        while history.index():
            pass
    history.values("preset")
    for verb in ("list", "list --json"):
        assert main(["history", *verb.split()]) == 0
        assert "r3" in capsys.readouterr().out


@pytest.mark.parametrize("change", ["deleted", "emptied"])
def test_a_database_that_is_lost_under_way_is_made_again(history: History, config: Config, change: str) -> None:
    saved(history, run("r1", status="done"))
    for file_of_it in config.db.parent.glob(f"{config.db.name}*"):
        file_of_it.unlink()
    if change == "emptied":
        config.db.touch()
    with pytest.raises(InvalidInput, match=r"history\.unusable"):
        history.summaries()
    assert history.summaries() == []
    history.finish(run("r2", status="done"))
    assert [line.id for line in history.summaries()] == ["r2"]
    assert config.db.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", BROKEN)
def test_a_run_that_can_not_be_read_is_a_line(
    history: History, config: Config, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2, 3):
        saved(history, run(f"r{number}", created_at=f"2026-11-0{number}", status="done"))
    execute(config, BROKEN[kind])
    lines = history.summaries()
    assert [(line.id, line.status) for line in lines] == [("r3", "done"), ("r2", "unreadable"), ("r1", "done")]
    assert lines[1].labels == ("A", "B")
    assert lines[1].problem is not None
    assert "r2" in say_message(lines[1].problem)
    for opened in (history.get, history.settings):
        with pytest.raises(WorkFailed) as caught:
            opened("r2")
        assert caught.value.message_id == "history.unreadable"
    while history.index():
        pass
    assert len(history.summaries(model="target")) >= 2
    assert history.get("r1") is not None
    # The command line lists it, and refuses to open or export it with a sentence.
    assert main(["history", "list"]) == 0
    assert "unreadable" in capsys.readouterr().out
    assert main(["history", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["problem"]
    for verb in ("show", "export"):
        assert main(["history", verb, "r2"]) == 1
        output = capsys.readouterr()
        assert output.out == ""
        assert "r2 can't be read" in output.err
        assert "Traceback" not in output.err


@pytest.mark.parametrize("column", ["outputs", "accuracy", "machine", "problem"])
def test_what_no_line_says_is_read_when_the_run_is_opened(history: History, config: Config, column: str) -> None:
    saved(history, run(status="done"))
    execute(config, f"UPDATE runs SET {column} = '[1' WHERE id = 'r1'")
    assert [line.status for line in history.summaries()] == ["done"]
    with pytest.raises(WorkFailed, match="unreadable"):
        history.get("r1")


def test_a_message_of_a_newer_version_is_said(history: History, config: Config) -> None:
    saved(history, run(status="failed"))
    execute(config, """UPDATE runs SET problem = '{"message_id": "run.melted", "params": {"side": "A"}}'""")
    opened = history.get("r1")
    assert opened is not None
    assert opened.problem is not None
    assert "run.melted" in say_message(opened.problem)


def swept(history: History) -> Sweep:
    sweep = made_sweep("k=1..4")
    save(history, sweep)
    return sweep


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sweeps SET plan = '{}'",
        """UPDATE sweeps SET "case" = '{"sides": 1}'""",
        "UPDATE sweeps SET status = 'paused'",
        "UPDATE points SET \"values\" = '[1'",
    ],
)
def test_a_sweep_that_can_not_be_read(history: History, config: Config, change: str) -> None:
    sweep = swept(history)
    saved(history, run(created_at="2025-01-01", status="done"))
    execute(config, change)
    [line, other] = history.summaries()
    assert (line.id, other.status) == (sweep.id, "done")
    if "points" not in change:
        assert line.status == "unreadable"
    with pytest.raises(WorkFailed, match="unreadable"):
        history.sweep(sweep.id)


def test_a_point_that_can_not_be_read_failed_for_that_reason(history: History, config: Config) -> None:
    sweep = swept(history)
    broken = sweep.points[1].run
    assert broken is not None
    execute(config, f"UPDATE runs SET workload = '{{}}' WHERE id = '{broken.id}'")
    opened = history.sweep(sweep.id)
    assert opened is not None
    assert [point.run == before.run for point, before in zip(opened.points, sweep.points, strict=True)] == [
        True,
        False,
        True,
        True,
    ]
    run_there = opened.points[1].run
    assert run_there is not None
    assert (run_there.id, run_there.status) == (broken.id, "failed")
    # It is not measured again, and the document says why it is missing.
    assert opened.points[1].settled
    assert "can't be read" in exported(opened, "json")
    with pytest.raises(WorkFailed):
        history.get(broken.id)


def test_a_database_of_a_newer_version_opens(config: Config, history: History) -> None:
    saved(history, run(status="done"))
    for statement in (
        "INSERT INTO _sqlite_migrations VALUES (99, 'playground', '099_newer', '2027-01-01')",
        "UPDATE runs SET seed = 1",
    ):
        execute(config, statement)
    with sqlite3.connect(config.db) as db:
        db.execute("ALTER TABLE runs ADD COLUMN newer TEXT")
    newer = History(config.db)
    assert newer.get("r1") is not None
    saved(newer, run("r2", status="done"))
    assert [line.id for line in newer.summaries()] == ["r2", "r1"]


def test_a_table_that_a_newer_version_renamed_is_said(config: Config, history: History) -> None:
    saved(history, run())
    with sqlite3.connect(config.db) as db:
        db.execute("ALTER TABLE entries RENAME TO lines")
    with pytest.raises(InvalidInput) as caught:
        history.summaries()
    assert caught.value.message_id == "history.unusable"


@pytest.mark.parametrize("opened", [False, True])
def test_a_locked_database_is_said_and_used_when_it_is_free(
    config: Config, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    monkeypatch.setattr(file, "READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr(file, "WRITE_TIMEOUT_S", 0.05)
    history = History(config.db)
    if opened:
        history.open()
    locking = sqlite3.connect(config.db, isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    with pytest.raises(PlaygroundError) as caught:
        history.begin(run())
    assert caught.value.message_id == "history.locked"
    if opened:
        # Another process that writes locks no reader out.
        assert history.summaries() == []
    locking.execute("ROLLBACK")
    locking.close()
    saved(history, run())
    assert [line.id for line in history.summaries()] == ["r1"]


def test_nobody_waits_long_for_an_update_under_way(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "READ_TIMEOUT_S", 0.05)
    history = History(config.db)
    with history._file._opening, pytest.raises(WorkFailed) as caught:
        history.summaries()
    assert caught.value.message_id == "history.updating"
    assert history.summaries() == []


def test_a_folder_that_appears_later_is_used(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a file")
    history = History(tmp_path / "there" / "h.db")
    with pytest.raises(InvalidInput):
        history.summaries()
    (tmp_path / "there").unlink()
    assert history.summaries() == []
