"""What came out of each run and sweep, in `entries`: written when it ends, and later for those of before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlite_utils import Database

from playground.domain.record.run import Run
from playground.domain.spec.case import Case
from playground.domain.spec.measurement import Measurement
from playground.domain.stats.headline import Headline
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep

OVER = (
    "SELECT id FROM entries WHERE summarised = 0"
    " AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = entries.id AND status = 'running')"
    " AND NOT EXISTS (SELECT 1 FROM sweeps WHERE sweeps.id = entries.id AND status = 'running')"
    " ORDER BY number DESC LIMIT 1"
)
# How far back runs are looked through for one like another.
LAST_RUNS = 500
LAST_MEASURED = (
    "SELECT id, measurement, machine FROM (SELECT * FROM runs ORDER BY id DESC LIMIT :last)"
    " WHERE mode = 'measured' AND status = 'done' AND workload = :workload ORDER BY id DESC LIMIT 20"
)
SETTINGS = "SELECT settings FROM sides WHERE run_id = ?"
TRIAL_TIMES = (
    "SELECT count(*) AS trials, max(started_ms) - min(started_ms) AS span_ms FROM trials WHERE run_id = ?"
)
# Of what can't be read, and of a point.
NONE: dict[str, Any] = dict.fromkeys(
    ("rates", "rate", "verdict", "side", "speed_up", "low", "high", "machine", "version")
)
NOTHING = Headline()
LONGEST_NOTE, LONGEST_TAGS = 2000, 200


@dataclass(frozen=True)
class Result:
    """A line's result, and what people have added to it. `machine` and `version` are names for people."""

    headline: Headline = NOTHING
    machine: str | None = None
    version: str | None = None
    star: bool = False
    tags: str = ""
    note: str = ""

    @classmethod
    def of_entry(cls, row: dict[str, Any]) -> Result:
        interval = None if row["low"] is None or row["high"] is None else (row["low"], row["high"])
        rates = tuple(json.loads(row["rates"] or "[]"))
        headline = Headline(rates, row["verdict"], row["side"], row["speed_up"], interval)
        return cls(headline, row["machine"], row["version"], bool(row["star"]), row["tags"], row["note"])


def trial_seconds(db: Database, case: Case, machine: Mapping[str, object]) -> float | None:
    """How long a trial took on average in the last measurement of the same, by the same models on this machine;
    None: there is none among the last runs."""
    targets = {getattr(side.engine, "target", None) for side in case.sides}
    plan = case.measurement
    for row in db.query(LAST_MEASURED, {"workload": case.workload.model_dump_json(), "last": LAST_RUNS}):
        try:
            measured, where = (
                Measurement.model_validate_json(row["measurement"]),
                json.loads(row["machine"] or "{}"),
            )
        except ValueError:
            # A newer version wrote it.
            continue
        if (measured.profile, measured.prompts) != (plan.profile, plan.prompts):
            continue
        if any(where.get(key) != machine.get(key) for key in ("cpu", "gpus")):
            continue
        settings = [json.loads(side["settings"]) for side in db.query(SETTINGS, [row["id"]])]
        [times] = db.query(TRIAL_TIMES, [row["id"]])
        if {side.get("target") for side in settings} == targets and times["trials"] > 1:
            return float(times["span_ms"] / 1000 / (times["trials"] - 1))
    return None


def to_summarise(db: Database) -> str | None:
    """The last run or sweep that is over and has no result yet."""
    row = next(db.query(OVER), None)
    return None if row is None else str(row["id"])


def values_of(record: Run | Sweep) -> dict[str, Any]:
    """What is noted of it. Reads every chunk: no transaction should wait for it."""
    if isinstance(record, Sweep):
        headline = SweepAnalysis.of(record).headline
        run = next((point.run for point in record.points if point.run is not None), None)
    elif record.sweep_id is not None:
        # A point's result is its sweep's.
        return NONE
    else:
        headline, run = Headline.of(record), record
    low, high = headline.interval or (None, None)
    versions = dict.fromkeys(side.runtime_version for side in run.sides if side.runtime_version) if run else {}
    return {
        "rates": json.dumps(headline.rates),
        "rate": max((rate for rate in headline.rates if rate is not None), default=None),
        "verdict": headline.verdict,
        "side": headline.side,
        "speed_up": headline.speed_up,
        "low": low,
        "high": high,
        "machine": machine_name(run.machine) if run else None,
        "version": " | ".join(versions) or None,
    }


def latest(db: Database, machine: dict[str, object]) -> dict[str, tuple[str, Headline]]:
    """By preset the id and the result of its last measurement or sweep on that machine."""
    # Most rows are of one machine: to go through all is faster than by its index.
    query = (
        "SELECT * FROM entries WHERE number IN (SELECT MAX(number) FROM entries NOT INDEXED WHERE machine = ?"
        " AND verdict IS NOT NULL AND preset IS NOT NULL AND id = listed AND deleted_at IS NULL GROUP BY preset)"
    )
    rows = db.query(query, [machine_name(machine)])
    return {row["preset"]: (row["id"], Result.of_entry(row).headline) for row in rows}


def write(db: Database, saved_id: str, values: dict[str, Any]) -> None:
    changes = ", ".join(f"{column} = ?" for column in values)
    db.conn.execute(f"UPDATE entries SET summarised = 1, {changes} WHERE id = ?", [*values.values(), saved_id])


def machine_name(machine: dict[str, object]) -> str | None:
    """Its first GPU, else its processor; None before the machine was looked at."""
    gpus = machine.get("gpus")
    if isinstance(gpus, list) and gpus and isinstance(gpus[0], dict):
        count = f"{len(gpus)} x " if len(gpus) > 1 else ""
        return f"{count}{gpus[0].get('name')}"
    return str(machine["cpu"]) if machine.get("cpu") else None


def tags(db: Database) -> list[str]:
    """The words that are tags of what is listed."""
    query = (
        "SELECT tag FROM (SELECT DISTINCT tag FROM entry_tags) AS words WHERE EXISTS"
        " (SELECT 1 FROM entry_tags AS used JOIN entries ON entries.number = used.number"
        " WHERE used.tag = words.tag AND deleted_at IS NULL)"
    )
    return sorted(tag for (tag,) in db.conn.execute(query))


def annotate(db: Database, saved_id: str, star: bool, tags: str, note: str) -> None:
    words = " ".join(tags.split())[:LONGEST_TAGS]
    change = "UPDATE entries SET star = ?, tags = ?, note = ? WHERE id = ?"
    db.conn.execute(change, [star, words, note[:LONGEST_NOTE], saved_id])
    for (number,) in list(db.conn.execute("SELECT number FROM entries WHERE id = ?", [saved_id])):
        db.conn.execute("DELETE FROM entry_tags WHERE number = ?", [number])
        rows = ((tag, number) for tag in words.split())
        db.conn.executemany("INSERT OR IGNORE INTO entry_tags VALUES (?, ?)", rows)
