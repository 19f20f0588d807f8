"""A run or sweep as one JSON value, with everything that the history keeps of it, and back."""

from __future__ import annotations

from typing import Any

from playground.domain.record.run import Run, SideRecord
from playground.domain.sweep.record import Sweep

from . import rows
from .conversations import text_of
from .rows import Row


def dumped(record: Run | Sweep) -> Row:
    """The rows, as the tables hold them; what belongs to a row lies within it."""
    if isinstance(record, Sweep):
        points = [
            {"point": rows.point_row(record.id, point), "run": dumped(point.run) if point.run else None}
            for point in record.points
        ]
        return {"sweep": rows.sweep_row(record), "points": points}
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
        return rows.sweep_of(values["sweep"], points)
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
