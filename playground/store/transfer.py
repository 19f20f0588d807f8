"""A run or sweep as one JSON value, with everything that the history keeps of it, and back; and files that are
imported: such a value, or another tool's results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playground.domain.errors import InvalidInput, WorkFailed
from playground.domain.record.run import Run, SideRecord
from playground.domain.sweep.record import Sweep

from . import rows
from .conversations import text_of
from .foreign.runs import documents, runs_of
from .history import History
from .rows import Row
from .unreadable import LONGEST_DETAIL, readable

# A document of ours has one of these.
OURS = ("record", "run_id")


def dumped(record: Run | Sweep) -> Row:
    """The rows, as the tables hold them; what belongs to a row lies within it."""
    if isinstance(record, Sweep):
        points = [
            {"point": rows.point_row(record.id, point), "run": dumped(point.run) if point.run else None}
            for point in record.points
        ]
        anchors = {"anchors": [dumped(run) for run in record.anchors]} if record.anchors else {}
        return {"sweep": rows.sweep_row(record), "points": points, **anchors}
    return {
        "run": rows.run_row(record),
        "sides": [_side(record.id, i, side) for i, side in enumerate(record.sides)],
    }


def _side(run_id: str, position: int, side: SideRecord) -> Row:
    trials = [
        {
            "trial": rows.trial_row(run_id, position, trial),
            "requests": [
                # With its text: a conversation's number is of one database.
                {
                    **rows.request_row(run_id, position, trial.round, number, trace, 0),
                    "conversation_id": None,
                    "conversation": text_of(trace.conversation),
                }
                for number, trace in enumerate(trial.requests)
            ],
        }
        for trial in side.trials
    ]
    samples = [rows.sample_row(run_id, position, sample) for sample in side.samples]
    return {"side": rows.side_row(run_id, position, side), "trials": trials, "samples": samples}


def loaded(values: Any) -> Run | Sweep:
    """What was dumped. Raises what reading a damaged row does: see `unreadable.py`."""
    if "sweep" in values:
        points = [
            rows.point_of(item["point"], _run(item["run"]) if item["run"] else None) for item in values["points"]
        ]
        sweep = rows.sweep_of(values["sweep"], points)
        sweep.anchors = [_run(item) for item in values.get("anchors", [])]
        return sweep
    return _run(values)


def _run(values: Any) -> Run:
    sides = []
    for item in values["sides"]:
        trials = [
            rows.trial_of(of_trial["trial"], [rows.request_of(row, {}) for row in of_trial["requests"]])
            for of_trial in item["trials"]
        ]
        sides.append(rows.side_of(item["side"], trials, [rows.sample_of(row) for row in item["samples"]]))
    return rows.run_of(values["run"], sides)


def text_of_file(file: Path, name: str) -> str:
    """Raises InvalidInput for a file that can't be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput("import.no_file", file=name, detail=error.strerror or str(error)) from error
    except ValueError as error:
        raise InvalidInput("import.not_ours", file=name, detail=str(error)[:LONGEST_DETAIL]) from error


def import_file(history: History, text: str, name: str) -> list[str]:
    """Add what the file holds to the history: a run or sweep that was saved as JSON, or the results of another
    tool. Returns the ids of what is new. Raises InvalidInput, which names the file, if there is nothing to add."""
    records = _records(text, name)
    new = [record for record in records if history.settings(record.id) is None]
    if not new:
        raise InvalidInput("import.there", id=records[0].id)
    for record in new:
        with _refusing(name):
            for run in _runs_of(record):
                if history.settings(run.id) is None:
                    history.finish(run)
            if isinstance(record, Sweep):
                history.finish_sweep(record)
    return [*dict.fromkeys(record.id for record in new)]


def record_of(text: str, name: str) -> Run | Sweep:
    """What one such document holds. Raises InvalidInput, which names the file, for anything else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("import.not_ours", file=name, detail=str(error)[:LONGEST_DETAIL]) from error
    return _ours(document if isinstance(document, dict) else {}, name)


def _records(text: str, name: str) -> list[Run | Sweep]:
    try:
        values = list(documents(text))
        if len(values) == 1 and isinstance(values[0][1], dict) and not values[0][1].keys().isdisjoint(OURS):
            return [_ours(values[0][1], name)]
        return [*runs_of(values)]
    except InvalidInput as error:
        if error.message_id.startswith("import."):
            raise
        raise InvalidInput("import.not_ours", file=name, detail=error.as_message()) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("import.not_ours", file=name, detail=str(error)[:LONGEST_DETAIL]) from error


def _ours(document: dict[str, Any], name: str) -> Run | Sweep:
    if not isinstance(document.get("record"), dict):
        raise InvalidInput("import.no_record", file=name)
    with _refusing(name):
        record = loaded(document["record"])
        for part in (record, *_runs_of(record)):
            if not re.fullmatch(r"[\w.-]{1,100}", part.id) or part.status == "running":
                raise ValueError(f"{part.id[:100]!r}, {part.status}")
        if not all(map(_consistent, _runs_of(record))):
            raise ValueError("mode")
        return record


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Raises InvalidInput, which names the file, for what is no record of ours."""
    try:
        with readable(name):
            yield
    except WorkFailed as error:
        if error.message_id != "history.unreadable":
            raise
        raise InvalidInput("import.not_ours", file=name, detail=error.params["detail"]) from error


def _runs_of(record: Run | Sweep) -> list[Run]:
    if isinstance(record, Run):
        return [record]
    return [*(point.run for point in record.points if point.run), *record.anchors]


def _consistent(run: Run) -> bool:
    """Whether exactly an imported run has one side with another tool's result."""
    reported = [side.reported is not None for side in run.sides]
    return (reported == [True] and run.measurement is not None) if run.mode == "imported" else not any(reported)
