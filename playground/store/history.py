"""Save, list and read runs. One connection an operation, WAL, every write inside BEGIN IMMEDIATE."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlite_utils import Database

from playground import private_files
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import Run, Trial
from playground.domain.record.traces import RequestTrace
from playground.domain.sweep.record import PointRecord, Sweep

from . import rows, summaries
from .messages import message_text
from .migrations import migrations
from .summaries import Summary

BUSY_TIMEOUT_S = 10


class History:
    """All runs of this host. Blocking: call it from a thread where an event loop runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        private_files.private_database(path, "PLAYGROUND_DB")
        try:
            with self._writing() as db:
                migrations.apply(db)
        except (OSError, sqlite3.Error) as error:
            raise InvalidInput("history.unusable", path=str(path), detail=str(error)) from error

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA foreign_keys=ON")
            yield Database(connection)
        finally:
            connection.close()

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        """IMMEDIATE: a deferred transaction that has read can't wait for another writer, it fails instead."""
        with self._reading() as db:
            db.conn.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.conn.rollback()
                raise
            db.conn.execute("COMMIT")

    def begin(self, run: Run) -> None:
        """Write the run and its sides as they stand."""
        with self._writing() as db:
            db.table("runs").insert(rows.run_row(run))
            db.table("sides").insert_all(rows.side_row(run.id, i, side) for i, side in enumerate(run.sides))

    def save_trial(self, run_id: str, position: int, trial: Trial, requests: Mapping[int, RequestTrace]) -> None:
        """Write the trial as it stands, and these of its requests, by their number in it: those that have ended,
        since `finish` writes no request of a trial again that is saved whole."""
        with self._writing() as db:
            _write_trial(db, run_id, position, trial, requests)

    def finish(self, run: Run) -> None:
        """Write the run and its sides as they ended, with the requests that are not saved yet."""
        with self._writing() as db:
            db.table("runs").update(run.id, rows.run_row(run))
            for position, side in enumerate(run.sides):
                db.table("sides").upsert(rows.side_row(run.id, position, side), pk=("run_id", "position"))
                for trial in side.trials:
                    _write_trial(db, run.id, position, trial, _unsaved(db, run.id, position, trial))
                samples = (rows.sample_row(run.id, position, sample) for sample in side.samples)
                db.table("samples").upsert_all(samples, pk=("run_id", "position", "ms"))

    def give_up(self, run_id: str, problem: Message) -> None:
        """Mark a run that could not be written as failed, with the reason. What was saved before stays."""
        with self._writing() as db:
            row = {"status": "failed", "problem": message_text(problem)}
            db.table("runs").update(run_id, row)

    def mark_interrupted(self) -> int:
        """Mark runs and sweeps that still say "running" as interrupted: their process is gone. Returns how many
        runs."""
        with self._writing() as db:
            db.conn.execute("UPDATE sweeps SET status = 'interrupted' WHERE status = 'running'")
            return db.conn.execute("UPDATE runs SET status = 'interrupted' WHERE status = 'running'").rowcount

    def summaries(self, *, text: str = "", model: str = "", preset: str = "", limit: int = 200) -> list[Summary]:
        """Runs and sweeps, newest first. `text` is looked for in prompts and answers, `model` among targets and
        drafts. Runs that are points of a sweep are not listed: the sweep is."""
        with self._reading() as db:
            lines = [
                *summaries.runs(db, text, model, preset, limit),
                *summaries.sweeps(db, text, model, preset, limit),
            ]
        return sorted(lines, key=lambda line: (line.created_at, line.id), reverse=True)[:limit]

    def presets(self) -> list[str]:
        with self._reading() as db:
            query = "SELECT DISTINCT preset FROM runs WHERE preset IS NOT NULL ORDER BY preset"
            return [row["preset"] for row in db.query(query)]

    def settings(self, saved_id: str) -> Run | Sweep | None:
        """A run or a sweep without its trials, samples and points, which is quick; None without one of that id."""
        with self._reading() as db:
            for row in db.table("sweeps").rows_where("id = ?", [saved_id]):
                return rows.sweep_of(row, [])
            for row in db.table("runs").rows_where("id = ?", [saved_id]):
                sides = db.table("sides").rows_where("run_id = ?", [saved_id], order_by="position")
                return rows.run_of(row, [rows.side_of(side, [], []) for side in sides])
        return None

    def get(self, run_id: str) -> Run | None:
        """The whole run, or None if there is none of that id."""
        with self._reading() as db:
            run = next(db.table("runs").rows_where("id = ?", [run_id]), None)
            if run is None:
                return None
            sides = []
            for row in list(db.table("sides").rows_where("run_id = ?", [run_id], order_by="position")):
                key = [run_id, row["position"]]
                where = "run_id = ? AND position = ?"
                requests: dict[int, list[RequestTrace]] = defaultdict(list)
                for request in db.table("requests").rows_where(where, key, order_by="number"):
                    requests[request["round"]].append(rows.request_of(request))
                trials = [
                    rows.trial_of(r, requests[r["round"]])
                    for r in db.table("trials").rows_where(where, key, order_by="round")
                ]
                samples = [rows.sample_of(r) for r in db.table("samples").rows_where(where, key, order_by="ms")]
                sides.append(rows.side_of(row, trials, samples))
            return rows.run_of(run, sides)

    def begin_sweep(self, sweep: Sweep) -> None:
        """Write the sweep and its points as they stand; one that goes on is written again."""
        with self._writing() as db:
            db.table("sweeps").upsert(rows.sweep_row(sweep), pk="id")
            points = (rows.point_row(sweep.id, point) for point in sweep.points)
            db.table("points").upsert_all(points, pk=("sweep_id", "number"))

    def save_point(self, sweep_id: str, point: PointRecord) -> None:
        """Write which run the point has."""
        with self._writing() as db:
            db.table("points").upsert(rows.point_row(sweep_id, point), pk=("sweep_id", "number"))

    def finish_sweep(self, sweep: Sweep) -> None:
        """Write how the sweep ended."""
        with self._writing() as db:
            row = rows.sweep_row(sweep)
            db.table("sweeps").update(sweep.id, {name: row[name] for name in ("status", "problem", "plan")})

    def sweep(self, sweep_id: str) -> Sweep | None:
        """The sweep with all its points' runs, or None if there is none of that id."""
        with self._reading() as db:
            sweep = next(db.table("sweeps").rows_where("id = ?", [sweep_id]), None)
            points = list(db.table("points").rows_where("sweep_id = ?", [sweep_id], order_by="number"))
        if sweep is None:
            return None
        runs = [self.get(row["run_id"]) if row["run_id"] else None for row in points]
        return rows.sweep_of(sweep, [rows.point_of(row, run) for row, run in zip(points, runs, strict=True)])

    def start_seconds(self, device: str, limit: int = 20) -> list[float]:
        """How long the last engine starts on this kind of device took, newest first."""
        query = (
            "SELECT ready_after_s FROM sides JOIN runs ON runs.id = run_id"
            " WHERE ready_after_s IS NOT NULL AND device = ? ORDER BY created_at DESC LIMIT ?"
        )
        with self._reading() as db:
            return [row["ready_after_s"] for row in db.query(query, [device, limit])]


def _unsaved(db: Database, run_id: str, position: int, trial: Trial) -> Mapping[int, RequestTrace]:
    """The requests to write: none of a trial that is saved whole, else all, since those of an interrupted trial
    are saved under other numbers."""
    where, key = "run_id = ? AND position = ? AND round = ?", [run_id, position, trial.round]
    table = db.table("requests")
    if table.count_where(where, key) == len(trial.requests):
        return {}
    table.delete_where(where, key)
    return dict(enumerate(trial.requests))


def _write_trial(
    db: Database, run_id: str, position: int, trial: Trial, requests: Mapping[int, RequestTrace]
) -> None:
    db.table("trials").upsert(rows.trial_row(run_id, position, trial), pk=("run_id", "position", "round"))
    written = (rows.request_row(run_id, position, trial.round, n, trace) for n, trace in requests.items())
    db.table("requests").upsert_all(written, pk=("run_id", "position", "round", "number"))
