"""The history's lines: what each run and sweep is called, and how it ended."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlite_utils import Database

from playground.domain.errors import WorkFailed
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.spec.settings import SideSettings
from playground.domain.sweep.record import Sweep

from . import rows
from .results import Result
from .unreadable import readable

NO_RESULT = Result()
CHOSEN = "IN (SELECT value FROM json_each(?))"
# Without what no line says, which may be long.
RUNS = (
    "SELECT id, created_at, mode, status, preset, sweep_id, seed, workload, measurement, NULL AS machine,"
    " NULL AS problem, NULL AS outputs, NULL AS accuracy, NULL AS harness, NULL AS prompts"
    f" FROM runs WHERE id {CHOSEN}"
)
SIDES = f"SELECT run_id, label, settings FROM sides WHERE run_id {CHOSEN} ORDER BY run_id, position"
SWEEPS = f"SELECT * FROM sweeps WHERE id {CHOSEN}"


@dataclass(frozen=True)
class Summary:
    """One line of the history. `labels` are in the order of the sides; `models` are their targets and drafts.

    `status` is a run's, or "unreadable" for what this version can't read, with `problem` saying why; `labels` and
    `models` may be empty then. "unsaved" is a run that is only in memory.
    """

    id: str
    created_at: str
    mode: str
    status: str
    preset: str | None
    prompt: str
    labels: tuple[str, ...]
    models: tuple[str, ...]
    problem: Message | None = None
    result: Result = NO_RESULT

    @property
    def readable(self) -> bool:
        return self.status != "unreadable"

    @classmethod
    def unsaved(cls, record: Run | Sweep, problem: Message) -> Summary:
        """The line of what could not be saved, and why."""
        if isinstance(record, Sweep):
            line = _summary(record, "sweep", [(side.label, side.engine) for side in record.case.sides])
        else:
            line = _summary(record, record.mode, [(side.label, side.settings) for side in record.sides])
        return replace(line, status="unsaved", problem=problem)


def lines(db: Database, ids: Sequence[str]) -> list[Summary]:
    """The lines of these runs and sweeps, in this order."""
    chosen = [json.dumps(ids)]
    sides: dict[str, list[rows.Row]] = defaultdict(list)
    for side in db.query(SIDES, chosen):
        sides[side["run_id"]].append(side)
    summaries = [
        *(_of_run(row, sides[row["id"]]) for row in db.query(RUNS, chosen)),
        *(_of_sweep(row) for row in db.query(SWEEPS, chosen)),
    ]
    entries = db.query(f"SELECT * FROM entries WHERE id {CHOSEN}", chosen)
    results = {entry["id"]: Result.of_entry(entry) for entry in entries}
    places = {saved_id: place for place, saved_id in enumerate(ids)}
    lines = (replace(line, result=results[line.id]) for line in summaries)
    return sorted(lines, key=lambda line: places[line.id])


def outlines(db: Database, ids: Sequence[str]) -> list[tuple[Run, Result]]:
    """These runs without trials and samples, and what came out; by when they were made."""
    chosen = [json.dumps(ids)]
    sides: dict[str, list[rows.Row]] = defaultdict(list)
    for side in db.query(f"SELECT * FROM sides WHERE run_id {CHOSEN} ORDER BY run_id, position", chosen):
        sides[side["run_id"]].append(side)
    entries = db.query(f"SELECT * FROM entries WHERE id {CHOSEN}", chosen)
    results = {entry["id"]: Result.of_entry(entry) for entry in entries}
    runs = list[Run]()
    for row in db.query(f"SELECT * FROM runs WHERE id {CHOSEN} AND status != 'running'", chosen):
        with suppress(WorkFailed), readable(row["id"]):
            runs.append(rows.run_of(row, [rows.side_of(side, [], []) for side in sides[row["id"]]]))
    return [(run, results[run.id]) for run in sorted(runs, key=lambda run: (run.created_at, run.id))]


def _of_run(row: rows.Row, sides: Sequence[rows.Row]) -> Summary:
    try:
        with readable(row["id"]):
            run = rows.run_of(row, [])
            return _summary(run, run.mode, [(side["label"], rows.settings_of(side)) for side in sides])
    except WorkFailed as error:
        return _unreadable(row, row["mode"], [side["label"] for side in sides], error)


def _of_sweep(row: rows.Row) -> Summary:
    try:
        with readable(row["id"]):
            sweep = rows.sweep_of(row, [])
            return _summary(sweep, "sweep", [(side.label, side.engine) for side in sweep.case.sides])
    except WorkFailed as error:
        return _unreadable(row, "sweep", [], error)


def _summary(saved: Run | Sweep, mode: str, sides: Sequence[tuple[str, SideSettings]]) -> Summary:
    models = {name: None for _, settings in sides for name in (settings.target, settings.draft) if name}
    return Summary(
        id=saved.id,
        created_at=saved.created_at,
        mode=mode,
        status=saved.status,
        preset=saved.preset,
        prompt=saved.title,
        labels=tuple(label for label, _ in sides),
        models=tuple(models),
    )


def _unreadable(row: rows.Row, mode: str, labels: Sequence[str], error: WorkFailed) -> Summary:
    return Summary(
        id=row["id"],
        created_at=str(row["created_at"]),
        mode=str(mode),
        status="unreadable",
        preset=row["preset"],
        prompt="",
        labels=tuple(map(str, labels)),
        models=(),
        problem=error.as_message(),
    )
