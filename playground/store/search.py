"""Which runs and sweeps the history lists: all, or those with a text, a model or a preset.

`entries` has a row for each run and sweep, with what a list is filtered by. Its number tells which began last, and
`listed` is the line that it belongs to: itself, or its sweep. Texts are found by an index (FTS5) of every three
letters in a row. It is filled after a run has ended, a few runs at a time, since a long text takes seconds; until
then the newest are read one by one.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from sqlite_utils import Database
from typing_extensions import TypedDict

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.unicode import mended

from .rows import Row

# Characters: the index knows no shorter text.
SHORTEST_INDEXED = 3
LONGEST_SEARCHED = 1000
# A shorter text is looked for in this many of the newest runs and sweeps.
MOST_SCANNED = 300
# Runs that are under way or have just ended, of which this many are read.
MOST_FRESH = 50
# Characters that a search reads of these, besides what the index finds: a tenth of a second.
MOST_READ = 3_000_000
# Of a run with longer prompts and answers, this many characters are found.
LONGEST_TEXT = 1_000_000
# Entries of a model that are sorted at once; of a model with more, the newest are soon found one by one.
FEW = 5000
# A batch of the indexing holds the write lock for about a tenth of a second.
BATCH = 200
BATCH_CHARACTERS = 100_000
OVER = (
    "SELECT number, id FROM entries WHERE indexed = 0"
    " AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = entries.id AND status = 'running')"
    " AND NOT EXISTS (SELECT 1 FROM sweeps WHERE sweeps.id = entries.id AND status = 'running')"
    " ORDER BY number DESC LIMIT ?"
)

# Of a search that finds more, the newest are ordered by a figure.
MOST_SORTED = 5000
Order = Literal["newest", "speed_up", "rate"]

# A part of a WHERE clause, with its values.
Condition = tuple[str, list[Any]]


@dataclass(frozen=True)
class Words:
    """What a run or sweep is found by."""

    number: int
    text: str
    models: tuple[str, ...]

    def have(self, text: str, model: str) -> bool:
        """Whether the text is among them, and the model."""
        if text.casefold() not in self.text.casefold():
            return False
        return not model or any(model.casefold() in name.casefold() for name in self.models)


def add_entry(db: Database, saved_id: str, sweep_id: str | None, preset: str | None, owner: str = "") -> None:
    """List a new run or sweep. `sweep_id`: the sweep that the run is a point of; `owner`: the visitor who started
    it, empty for the host."""
    statement = "INSERT OR IGNORE INTO entries (id, listed, preset, owner) VALUES (?, ?, ?, ?)"
    db.conn.execute(statement, [saved_id, sweep_id or saved_id, preset, owner or None])


class Filters(TypedDict, total=False):
    """What a list is limited to, and its order. `text` is looked for in prompts and answers, `model` among targets
    and drafts; `tag` is one word of the tags; a line needs a figure to be ordered by it."""

    text: str
    model: str
    preset: str
    machine: str
    version: str
    verdict: str
    tag: str
    starred: bool
    order: Order


def listed(db: Database, filters: Filters, limit: int, offset: int = 0) -> list[str]:
    """The ids of runs and sweeps, by default those that began last first. Raises InvalidInput for a text or model
    that is too long."""
    order, searched = filters.get("order", "newest"), filters.get("text") or filters.get("model")
    if searched and order == "newest":
        return list(islice(_newest_first(db, filters), offset, offset + limit))
    if searched:
        ids = json.dumps(list(islice(_newest_first(db, filters), MOST_SORTED)))
        conditions: list[Condition] = [("id IN (SELECT value FROM json_each(?))", [ids])]
    else:
        conditions = _of_lines(db, filters)
        if filters.get("preset"):
            conditions.append(("preset = ?", [_storable(filters["preset"])]))
    column = "number" if order == "newest" else order
    # Not by an index of a filter: of a machine with many runs all would be sorted.
    source = "entries" if order == "newest" else f"entries INDEXED BY entries_by_{order}"
    known = ["id = listed", "deleted_at IS NULL", f"{column} IS NOT NULL"]
    where = " AND ".join([*known, *(sql for sql, _ in conditions)])
    values = [value for _, bound in conditions for value in bound]
    query = f"SELECT id FROM {source} WHERE {where} ORDER BY {column} DESC LIMIT ? OFFSET ?"
    return [saved_id for (saved_id,) in db.conn.execute(query, [*values, limit, offset])]


def _of_lines(db: Database, filters: Filters) -> list[Condition]:
    """What a line itself must meet."""
    conditions = [
        (f"{name} = ?", [_storable(value)])
        for name, value in (
            ("machine", filters.get("machine")),
            ("version", filters.get("version")),
            ("verdict", filters.get("verdict")),
        )
        if value
    ]
    if filters.get("starred"):
        conditions.append(("star = 1", []))
    if filters.get("tag"):
        conditions.append(_among(db, "entry_tags", "tag = ?", _storable(filters["tag"])))
    return conditions


def _newest_first(db: Database, filters: Filters) -> Iterator[str]:
    text, model = _storable(filters.get("text", "")), _storable(filters.get("model", ""))
    preset = _storable(filters.get("preset", ""))
    if max(len(text), len(model)) > LONGEST_SEARCHED:
        raise InvalidInput("history.long_text", longest=LONGEST_SEARCHED)
    lines = _of_lines(db, filters)
    if lines and (text or model):
        lines = [_result_of(db, lines)]
    short = 0 < len(text) < SHORTEST_INDEXED
    examined = [*(_fresh(db) if text or model else []), *(_newest(db) if short else [])]
    numbers = [words.number for words in examined if words.have(text, model)]
    among = [("number IN (SELECT value FROM json_each(?))", [json.dumps(numbers)])]
    streams = [_stream(db, [*among, *lines], preset)]
    if not short:
        streams.append(_stream(db, [*([_with_model(db, model)] if model else []), *lines], preset, text))
    seen = set[str]()
    for _, line in heapq.merge(*streams, reverse=True):
        if line not in seen:
            seen.add(line)
            yield line


def _stream(db: Database, conditions: list[Condition], preset: str, text: str = "") -> Iterator[tuple[int, str]]:
    """Number and line of the entries that meet the conditions, the last first, as far as they are consumed."""
    if preset:
        conditions = [*conditions, ("preset = ?", [preset])]
    tables, order = "entries", "number"
    if text:
        # Driven by the index of texts, which can be read from its end.
        tables, order = "texts CROSS JOIN entries ON number = texts.rowid", "texts.rowid"
        conditions = [("texts MATCH ?", [_phrase(text)]), *conditions]
    where = " AND ".join([*(condition for condition, _ in conditions), "deleted_at IS NULL"])
    values = [value for _, bound in conditions for value in bound]
    query = f"SELECT number, listed FROM {tables} WHERE {where} ORDER BY {order} DESC"
    yield from db.conn.execute(query, values)


def _with_model(db: Database, model: str) -> Condition:
    """What an entry of such a model meets."""
    like = "SELECT id FROM models WHERE name LIKE ? ESCAPE '\\'"
    models = json.dumps([number for (number,) in db.conn.execute(like, [_like(model)])])
    return _among(db, "entry_models", "model_id IN (SELECT value FROM json_each(?))", models)


def _result_of(db: Database, lines: list[Condition]) -> Condition:
    """What meets these as a line of the list, for entries that are found by their text: a sweep's points have it,
    and the sweep what came out."""
    where, bound = " AND ".join(sql for sql, _ in lines), [value for _, values in lines for value in values]
    some = f"SELECT id FROM entries WHERE {where} LIMIT ?"
    ids = [saved_id for (saved_id,) in db.conn.execute(some, [*bound, FEW + 1])]
    if len(ids) <= FEW:
        return "listed IN (SELECT value FROM json_each(?))", [json.dumps(ids)]
    where = where.replace("entries.", "line.")
    return f"EXISTS (SELECT 1 FROM entries AS line WHERE line.id = entries.listed AND {where})", bound


def _among(db: Database, table: str, chosen: str, value: str) -> Condition:
    """What the entries that the table has for this value meet: each is among a few, or else is examined."""
    some = f"SELECT number FROM {table} WHERE {chosen} LIMIT ?"
    numbers = [number for (number,) in db.conn.execute(some, [value, FEW + 1])]
    if len(numbers) <= FEW:
        return "number IN (SELECT value FROM json_each(?))", [json.dumps(numbers)]
    return f"EXISTS (SELECT 1 FROM {table} WHERE {table}.number = entries.number AND {chosen})", [value]


def limits(db: Database, text: str, model: str) -> Message | None:
    """What a search for this does not find, if anything; by how many runs are not indexed yet."""
    if text and len(text) < SHORTEST_INDEXED:
        return Message("history.short_text", {"shortest": SHORTEST_INDEXED, "newest": MOST_SCANNED})
    [(left,)] = db.conn.execute("SELECT count(*) FROM entries WHERE indexed = 0")
    return Message("history.indexing", {"left": left}) if left > MOST_FRESH and (text or model) else None


def to_index(db: Database) -> list[Words]:
    """The words of the newest runs and sweeps that are over and not indexed: a batch."""
    return _read(db, list(db.query(OVER, [BATCH])), BATCH_CHARACTERS)


def index(db: Database, batch: Iterable[Words]) -> None:
    """Make these be found. Those that another process has indexed meanwhile are left as they are."""
    for words in batch:
        changed = db.conn.execute(
            "UPDATE entries SET indexed = 1 WHERE number = ? AND indexed = 0", [words.number]
        )
        if not changed.rowcount:
            continue
        db.conn.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", [words.number, words.text])
        for name in words.models:
            db.conn.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", [name])
            db.conn.execute(
                "INSERT OR IGNORE INTO entry_models SELECT ?, id FROM models WHERE name = ?", [words.number, name]
            )


def forget(db: Database, entry: Row) -> None:
    """Take what `index` has added out of the index again, while the rows still are as they were; and the tags."""
    db.conn.execute("DELETE FROM entry_tags WHERE number = ?", [entry["number"]])
    if entry["indexed"]:
        text = _words(db, entry).text
        db.conn.execute("INSERT INTO texts (texts, rowid, text) VALUES ('delete', ?, ?)", [entry["number"], text])
        db.conn.execute("DELETE FROM entry_models WHERE number = ?", [entry["number"]])


def _fresh(db: Database) -> list[Words]:
    query = "SELECT number, id FROM entries WHERE indexed = 0 ORDER BY number DESC LIMIT ?"
    return _read(db, list(db.query(query, [MOST_FRESH])), MOST_READ)


def _newest(db: Database) -> list[Words]:
    query = "SELECT number, id FROM entries ORDER BY number DESC LIMIT ?"
    return _read(db, list(db.query(query, [MOST_SCANNED])), MOST_READ)


def _read(db: Database, entries: Iterable[Row], most: int) -> list[Words]:
    """The words of the first of these, until there are so many characters."""
    read, characters = list[Words](), 0
    for entry in entries:
        read.append(_words(db, entry))
        characters += len(read[-1].text)
        if characters > most:
            break
    return read


def _words(db: Database, entry: Row) -> Words:
    """Read from the rows as they are, readable as a record or not."""
    saved_id = [entry["id"]]
    texts, models = dict[str, None](), dict[str, None]()
    for run in db.query("SELECT workload FROM runs WHERE id = ?", saved_id):
        texts |= dict.fromkeys(_prompts(_table(run["workload"])))
    for side in db.query("SELECT settings FROM sides WHERE run_id = ?", saved_id):
        models |= dict.fromkeys(_models(_table(side["settings"])))
    for sweep in db.query('SELECT plan, "case" FROM sweeps WHERE id = ?', saved_id):
        case = _table(sweep["case"])
        texts |= dict.fromkeys(
            name for knob in _tables(_table(sweep["plan"]), "knobs") for name in _text(knob, "name")
        )
        texts |= dict.fromkeys(_prompts(_within(case, "workload")))
        models |= dict.fromkeys(
            name for side in _tables(case, "sides") for name in _models(_within(side, "engine"))
        )
    characters = sum(map(len, texts))
    for (answer,) in db.conn.execute("SELECT output_text FROM requests WHERE run_id = ?", saved_id):
        if characters > LONGEST_TEXT:
            break
        if answer not in texts:
            texts[answer] = None
            characters += len(answer)
    return Words(entry["number"], "\n\n".join(texts)[:LONGEST_TEXT], tuple(models))


def _prompts(workload: Mapping[str, Any]) -> Iterator[str]:
    yield from _text(workload, "prompt")
    yield from _text(workload, "system")
    for turn in _tables(workload, "turns"):
        yield from _text(turn, "content")


def _models(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from _text(settings, "target")
    yield from _text(settings, "model")
    yield from _text(_within(settings, "speculation"), "model")


def _table(text: object) -> Mapping[str, Any]:
    """What a column holds; nothing if that is no table."""
    try:
        values = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        values = None
    return values if isinstance(values, dict) else {}


def _within(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = values.get(name)
    return part if isinstance(part, dict) else {}


def _tables(values: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    parts = values.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _text(values: Mapping[str, Any], name: str) -> list[str]:
    text = values.get(name)
    return [text] if isinstance(text, str) and text else []


def _storable(text: str) -> str:
    """The text as SQLite takes it: a query of FTS5 ends at a NUL, and half an emoji is no text."""
    return mended(text).replace("\0", "\ufffd")


def _phrase(text: str) -> str:
    """A query of FTS5 that finds the text itself, anywhere."""
    quoted = text.replace('"', '""')
    return f'"{quoted}"'


def _like(text: str) -> str:
    """A pattern for LIKE (escape: a backslash) that finds the text itself, anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
