"""The history's lines: runs and sweeps, filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlite_utils import Database

from playground.domain.record.run import Run
from playground.domain.spec.settings import SideSettings
from playground.domain.sweep.record import Sweep

from . import rows


@dataclass(frozen=True)
class Summary:
    """One line of the history. `labels` are in the order of the sides; `models` are their targets and drafts."""

    id: str
    created_at: str
    mode: str
    status: str
    preset: str | None
    prompt: str
    labels: tuple[str, ...]
    models: tuple[str, ...]


def runs(db: Database, text: str, model: str, preset: str, limit: int) -> list[Summary]:
    """Runs that belong to no sweep, newest first."""
    where, values = ["sweep_id IS NULL"], list[Any]()
    if text:
        where.append(
            "(workload ->> '$.prompt' LIKE ? ESCAPE '\\' OR workload ->> '$.system' LIKE ? ESCAPE '\\'"
            " OR EXISTS (SELECT 1 FROM json_each(workload, '$.turns')"
            " WHERE value ->> '$.content' LIKE ? ESCAPE '\\')"
            " OR EXISTS (SELECT 1 FROM requests WHERE run_id = runs.id AND output_text LIKE ? ESCAPE '\\'))"
        )
        values += [_like(text)] * 4
    if model:
        where.append(
            "EXISTS (SELECT 1 FROM sides WHERE run_id = runs.id"
            " AND (settings ->> '$.target' LIKE ? ESCAPE '\\'"
            " OR settings ->> '$.model' LIKE ? ESCAPE '\\'"
            " OR settings ->> '$.speculation.model' LIKE ? ESCAPE '\\'))"
        )
        values += [_like(model)] * 3
    return [_of_run(db, row) for row in _newest(db, "runs", where, values, preset, limit)]


def sweeps(db: Database, text: str, model: str, preset: str, limit: int) -> list[Summary]:
    """Sweeps, newest first."""
    where, values = ["1"], list[Any]()
    if text:
        where.append(
            "(EXISTS (SELECT 1 FROM json_each(plan, '$.knobs') WHERE value ->> '$.name' LIKE ? ESCAPE '\\')"
            " OR \"case\" ->> '$.workload.prompt' LIKE ? ESCAPE '\\'"
            " OR EXISTS (SELECT 1 FROM runs JOIN requests ON run_id = runs.id"
            " WHERE sweep_id = sweeps.id AND output_text LIKE ? ESCAPE '\\'))"
        )
        values += [_like(text)] * 3
    if model:
        where.append(
            "EXISTS (SELECT 1 FROM json_each(\"case\", '$.sides')"
            " WHERE value ->> '$.engine.target' LIKE ? ESCAPE '\\'"
            " OR value ->> '$.engine.model' LIKE ? ESCAPE '\\'"
            " OR value ->> '$.engine.speculation.model' LIKE ? ESCAPE '\\')"
        )
        values += [_like(model)] * 3
    return [_of_sweep(rows.sweep_of(row, [])) for row in _newest(db, "sweeps", where, values, preset, limit)]


def _newest(
    db: Database, table: str, where: list[str], values: list[Any], preset: str, limit: int
) -> list[rows.Row]:
    if preset:
        where, values = [*where, "preset = ?"], [*values, preset]
    return list(
        db.table(table).rows_where(" AND ".join(where), values, order_by="created_at DESC, id DESC", limit=limit)
    )


def _of_run(db: Database, row: rows.Row) -> Summary:
    run = rows.run_of(row, [])
    stored = db.table("sides").rows_where("run_id = ?", [run.id], order_by="position")
    sides = [rows.side_of(side, [], []) for side in stored]
    return _summary(run, run.mode, [(side.label, side.settings) for side in sides])


def _of_sweep(sweep: Sweep) -> Summary:
    return _summary(sweep, "sweep", [(side.label, side.engine) for side in sweep.case.sides])


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


def _like(text: str) -> str:
    """A pattern for LIKE (escape: a backslash) that finds the text itself, anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
