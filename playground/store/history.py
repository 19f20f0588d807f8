"""Save, list and read runs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Literal

from sqlite_utils import Database
from typing_extensions import Unpack

from playground import private_files
from playground.domain.errors import InvalidInput, WorkFailed
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.case import Case
from playground.domain.stats.headline import Headline
from playground.domain.sweep.record import PointRecord, Sweep

from . import conversations, removal, results, rows, search, summaries
from .file import DatabaseFile
from .messages import message_text
from .results import Result
from .search import Filters
from .summaries import Summary
from .unreadable import readable

ALREADY_ALONE = nullcontext()
SUMMARISE_S = 0.1
PRUNED_AT_ONCE = 20
Listed = Literal["preset", "machine", "version"]


class History:
    """All runs of this host. Blocking: call it from a thread where an event loop runs.

    Every operation raises InvalidInput if the database can't be used, and WorkFailed if it is locked; one that
    reads a run or sweep raises WorkFailed for what this version can't read.
    """

    def __init__(self, path: Path) -> None:
        self._file = DatabaseFile(path)

    def open(self) -> None:
        """Make the database if there is none, and bring an older one up to date, as any operation does."""
        self._file.open()

    def begin(self, run: Run, owner: str = "") -> None:
        """Write the run and its sides as they stand. `owner`: the visitor who started it, empty for the host."""
        with self._file.writing() as db:
            db.table("runs").insert(rows.run_row(run))
            search.add_entry(db, run.id, run.sweep_id, run.preset, owner)
            db.table("sides").insert_all(rows.side_row(run.id, i, side) for i, side in enumerate(run.sides))

    def save_trial(self, run_id: str, position: int, trial: Trial, requests: Mapping[int, RequestTrace]) -> None:
        """Write the trial as it stands, and these of its requests, by their number in it: those that have ended,
        since `finish` writes no request of a trial again that is saved whole."""
        with self._file.writing() as db:
            _write_trial(db, run_id, position, trial, requests)

    def finish(self, run: Run) -> None:
        """Write the run and its sides as they ended, with everything that is not saved yet: all of it, if the
        history could not be used before."""
        values = results.values_of(run)
        with self._file.writing() as db:
            db.table("runs").upsert(rows.run_row(run), pk="id")
            search.add_entry(db, run.id, run.sweep_id, run.preset)
            for position, side in enumerate(run.sides):
                db.table("sides").upsert(rows.side_row(run.id, position, side), pk=("run_id", "position"))
                for trial in side.trials:
                    _write_trial(db, run.id, position, trial, _unsaved(db, run.id, position, trial))
                samples = (rows.sample_row(run.id, position, sample) for sample in side.samples)
                db.table("samples").upsert_all(samples, pk=("run_id", "position", "ms"))
            results.write(db, run.id, values)

    def give_up(self, run_id: str, problem: Message) -> None:
        """Mark a run that could not be written as failed, with the reason. What was saved before stays."""
        with self._file.writing() as db:
            change = "UPDATE runs SET status = 'failed', problem = ? WHERE id = ?"
            db.conn.execute(change, [message_text(problem), run_id])

    def mark_interrupted(self, alone: AbstractContextManager[object] = ALREADY_ALONE) -> int | None:
        """Mark runs and sweeps that still say "running" as interrupted: their process is gone. Returns how many
        runs. `alone` is held meanwhile, but not while waiting for the database; if it raises TimeoutError, another
        process may be running one, so nothing is marked: None."""
        with self._file.writing() as db, suppress(TimeoutError), alone:
            db.conn.execute("UPDATE sweeps SET status = 'interrupted' WHERE status = 'running'")
            marked = db.conn.execute("UPDATE runs SET status = 'interrupted' WHERE status = 'running'")
            return int(marked.rowcount)
        return None

    def summaries(self, *, limit: int = 200, offset: int = 0, **filters: Unpack[Filters]) -> list[Summary]:
        """Runs and sweeps, by default the last first. Runs that are points of a sweep are not listed: the sweep
        is."""
        with self._file.reading() as db:
            lines = summaries.lines(db, search.listed(db, filters, limit, offset))
        if filters.get("order", "newest") == "newest":
            lines.sort(key=lambda line: (line.created_at, line.id), reverse=True)
        return lines

    def search_limits(self, *, text: str = "", model: str = "") -> Message | None:
        """What such a search does not find; None if it finds everything."""
        with self._file.reading() as db:
            return search.limits(db, text, model)

    def index(self) -> bool:
        """Make a batch of the runs and sweeps that are over be found by their words. Returns whether there was
        any: then there may be more."""
        with self._file.reading() as db:
            batch = search.to_index(db)
        if batch:
            with self._file.writing() as db:
                search.index(db, batch)
        return bool(batch)

    def summarise(self) -> bool:
        """Note the results of some runs and sweeps that are over, for about a tenth of a second. Returns whether
        there was any: then there may be more."""
        ended = time.monotonic() + SUMMARISE_S
        summarised = False
        while time.monotonic() < ended:
            with self._file.reading() as db:
                saved_id = results.to_summarise(db)
            if saved_id is None:
                break
            self._summarise(saved_id)
            summarised = True
        return summarised

    def _summarise(self, saved_id: str) -> None:
        values = results.NONE
        try:
            record = self.sweep(saved_id) or self.get(saved_id)
            with readable(saved_id):
                values = results.values_of(record) if record else results.NONE
        except WorkFailed as error:
            if error.message_id != "history.unreadable":
                raise
        with self._file.writing() as db:
            results.write(db, saved_id, values)

    def annotate(self, saved_id: str, *, star: bool, tags: str, note: str) -> None:
        """Set what people add to a run or sweep. `tags` are words; too long texts are cut."""
        with self._file.writing() as db:
            results.annotate(db, saved_id, star, tags, note)

    def result(self, saved_id: str) -> Result:
        """What the list says of a run or sweep."""
        with self._file.reading() as db:
            return next(map(Result.of_entry, db.query("SELECT * FROM entries WHERE id = ?", [saved_id])), Result())

    def owner(self, saved_id: str) -> str:
        """The visitor who started a run or sweep; empty: the host, or there is none of that id."""
        query = "SELECT owner FROM entries WHERE id = (SELECT listed FROM entries WHERE id = ?)"
        with self._file.reading() as db:
            return next((row[0] or "" for row in db.conn.execute(query, [saved_id])), "")

    def latest_results(self, machine: dict[str, object]) -> dict[str, tuple[str, Headline]]:
        """By preset the id and the result of its last measurement or sweep on that machine."""
        with self._file.reading() as db:
            return results.latest(db, machine)

    def delete(self, saved_id: str) -> bool:
        """Take a run or sweep that is over off the list; returns whether there is one. It is removed for good an
        hour later."""
        with self._file.writing() as db:
            return removal.hide(db, saved_id)

    def undelete(self, saved_id: str) -> bool:
        """Undo it; returns whether it could be undone."""
        with self._file.writing() as db:
            return removal.restore(db, saved_id)

    def purge(self) -> bool:
        """Remove for good one of those that were deleted an hour ago or earlier. Returns whether there was any."""
        with self._file.writing() as db:
            outlived = removal.outlived(db)
            removal.remove(db, outlived)
        return bool(outlived)

    def prune(self, *, before: str | None = None, most_bytes: int | None = None) -> int:
        """Remove for good what began before that time (ISO), and then the oldest until the database takes no more
        than that, and give the space back. What has a star stays. Returns how many were removed. Takes minutes for
        gigabytes; others can use the database, but for the end."""
        removed = 0
        while batch := self._pruned(before, most_bytes):
            removed += batch
        with self._file.maintaining() as db:
            removal.remove_unsent(db)
            db.conn.execute("VACUUM")
        return removed

    def _pruned(self, before: str | None, most_bytes: int | None) -> int:
        with self._file.writing() as db:
            chosen = removal.oldest(db, PRUNED_AT_ONCE, before) if before else []
            if not chosen and most_bytes is not None and removal.used_bytes(db) > most_bytes:
                chosen = removal.oldest(db, PRUNED_AT_ONCE)
            removal.remove(db, chosen)
            return len(chosen)

    def backup(self, path: Path) -> None:
        """Write a copy of the whole database, as it is at this moment, while others use it. Raises InvalidInput if
        there is a file already, or none can be made."""
        try:
            # SQLite itself would make one that others can read.
            private_files.fresh_file(path, replace=False).close()
        except OSError as error:
            detail = error.strerror or str(error)
            raise InvalidInput("history.no_backup", path=str(path), detail=detail) from error
        with self._file.maintaining() as db:
            db.conn.execute("VACUUM INTO ?", [str(path)])

    def values(self, column: Listed) -> list[str]:
        """The different values of a column of the list."""
        with self._file.reading() as db:
            query = f"SELECT DISTINCT {column} FROM entries WHERE {column} IS NOT NULL ORDER BY {column}"
            return [value for (value,) in db.conn.execute(query)]

    def tags(self) -> list[str]:
        """All words that are tags."""
        with self._file.reading() as db:
            return results.tags(db)

    def settings(self, saved_id: str) -> Run | Sweep | None:
        """A run or a sweep without its trials, samples and points, which is quick; None without one of that id."""
        with self._file.reading() as db, readable(saved_id):
            for row in db.table("sweeps").rows_where("id = ?", [saved_id]):
                return rows.sweep_of(row, [])
            for row in db.table("runs").rows_where("id = ?", [saved_id]):
                sides = db.table("sides").rows_where("run_id = ?", [saved_id], order_by="position")
                return rows.run_of(row, [rows.side_of(side, [], []) for side in sides])
        return None

    def outlines(self, preset: str, limit: int) -> list[tuple[Run, Result]]:
        """The newest runs of a preset that are over, the earliest of them first: without trials and samples, with
        what came out. What can't be read is left out."""
        with self._file.reading() as db:
            return summaries.outlines(db, search.listed(db, {"preset": preset}, limit))

    def get(self, run_id: str) -> Run | None:
        """The whole run, or None if there is none of that id."""
        with self._file.reading() as db, readable(run_id):
            run = next(db.table("runs").rows_where("id = ?", [run_id]), None)
            if run is None:
                return None
            shared = conversations.of_run(db, run_id)
            sides = []
            for row in list(db.table("sides").rows_where("run_id = ?", [run_id], order_by="position")):
                key = [run_id, row["position"]]
                where = "run_id = ? AND position = ?"
                requests: dict[int, list[RequestTrace]] = defaultdict(list)
                for request in db.table("requests").rows_where(where, key, order_by="number"):
                    requests[request["round"]].append(rows.request_of(request, shared))
                trials = [
                    rows.trial_of(r, requests[r["round"]])
                    for r in db.table("trials").rows_where(where, key, order_by="round")
                ]
                samples = [rows.sample_of(r) for r in db.table("samples").rows_where(where, key, order_by="ms")]
                sides.append(rows.side_of(row, trials, samples))
            return rows.run_of(run, sides)

    def begin_sweep(self, sweep: Sweep, owner: str = "") -> None:
        """Write the sweep and its points as they stand; one that goes on is written again, and keeps its owner."""
        with self._file.writing() as db:
            _write_sweep(db, sweep, owner)

    def save_point(self, sweep_id: str, point: PointRecord) -> None:
        """Write which run the point has."""
        with self._file.writing() as db:
            db.table("points").upsert(rows.point_row(sweep_id, point), pk=("sweep_id", "number"))

    def finish_sweep(self, sweep: Sweep) -> None:
        """Write how the sweep ended, with its points."""
        values = results.values_of(sweep)
        with self._file.writing() as db:
            _write_sweep(db, sweep)
            results.write(db, sweep.id, values)

    def sweep(self, sweep_id: str) -> Sweep | None:
        """The sweep with all its points' runs, or None if there is none of that id. The run of a point that can't
        be read counts as failed, with the reason."""
        with self._file.reading() as db, readable(sweep_id):
            row = next(db.table("sweeps").rows_where("id = ?", [sweep_id]), None)
            if row is None:
                return None
            sweep = rows.sweep_of(row, [])
            points = list(db.table("points").rows_where("sweep_id = ?", [sweep_id], order_by="number"))
            sweep.points = [rows.point_of(point, None) for point in points]
        for row, point in zip(points, sweep.points, strict=True):
            try:
                point.run = self.get(row["run_id"]) if row["run_id"] else None
            except WorkFailed as error:
                if error.message_id != "history.unreadable":
                    raise
                point.run = _unreadable_run(sweep, row["run_id"], point, error)
        sweep.anchors = self._anchors(sweep)
        return sweep

    def _anchors(self, sweep: Sweep) -> list[Run]:
        """Its runs on other machines that are no points."""
        points = [point.run.id for point in sweep.points if point.run is not None]
        with self._file.reading() as db:
            chosen = "sweep_id = ? AND status = 'done' AND json_extract(machine, '$.node') IS NOT NULL"
            others = [row["id"] for row in db.table("runs").rows_where(chosen, [sweep.id], order_by="id")]
        runs = [self.get(run_id) for run_id in others if run_id not in points]
        return [run for run in runs if run is not None and sweep.is_anchor(run)]

    def trial_seconds(self, case: Case, machine: Mapping[str, object]) -> float | None:
        """How long a trial of the last measurement like this case took here; None: there is none."""
        with self._file.reading() as db:
            return results.trial_seconds(db, case, machine)

    def start_seconds(self, device: str, limit: int = 20) -> list[float]:
        """How long the last engine starts on this kind of device took, newest first: ids of runs sort by time."""
        query = (
            "SELECT ready_after_s FROM sides WHERE ready_after_s IS NOT NULL AND device = ?"
            " ORDER BY run_id DESC LIMIT ?"
        )
        with self._file.reading() as db:
            return [row["ready_after_s"] for row in db.query(query, [device, limit])]


def _unreadable_run(sweep: Sweep, run_id: str, point: PointRecord, error: WorkFailed) -> Run:
    case = sweep.planned[point.number].case
    return Run(
        id=run_id,
        created_at=sweep.created_at,
        mode="measured",
        workload=case.workload,
        sides=[SideRecord(side.label, side.engine, profile=side.profile) for side in case.sides],
        measurement=case.measurement,
        preset=sweep.preset,
        sweep_id=sweep.id,
        status="failed",
        problem=error.as_message(),
    )


def _write_sweep(db: Database, sweep: Sweep, owner: str = "") -> None:
    db.table("sweeps").upsert(rows.sweep_row(sweep), pk="id")
    search.add_entry(db, sweep.id, None, sweep.preset, owner)
    points = (rows.point_row(sweep.id, point) for point in sweep.points)
    db.table("points").upsert_all(points, pk=("sweep_id", "number"))


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
    stored = conversations.Writer(db)
    written = [
        rows.request_row(run_id, position, trial.round, n, trace, stored.number(trace.conversation))
        for n, trace in requests.items()
    ]
    db.table("requests").upsert_all(written, pk=("run_id", "position", "round", "number"))
