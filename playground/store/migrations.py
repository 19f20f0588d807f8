"""The database's shape, as named steps. Never change a step that was released: add one."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

migrations = Migrations("playground")


@migrations(name="001_history")
def history(db: Database) -> None:
    """Runs, their sides, each side's requests with raw chunk timings, and samples of the engine's counters."""
    db.table("runs").create(
        {
            "id": str,
            "created_at": str,
            "mode": str,
            "status": str,
            "preset": str,
            "seed": int,
            "workload": str,
            "machine": str,
            "problem": str,
        },
        pk="id",
        not_null={"created_at", "mode", "status", "workload", "machine"},
    )
    db.table("sides").create(
        {
            "run_id": str,
            "position": int,
            "label": str,
            "settings": str,
            "command": str,
            "runtime_version": str,
            "device": str,
            "placement": str,
            "contended": int,
            "before": str,
            "after": str,
            "problem": str,
            "log_tail": str,
        },
        pk=("run_id", "position"),
        not_null={"label", "settings"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    db.table("requests").create(
        {
            "run_id": str,
            "position": int,
            "number": int,
            "sent_ms": float,
            "conversation": str,
            "output_text": str,
            "token_ids": str,
            "chunks": str,
            "finish_reason": str,
            "prompt_tokens": int,
            "output_tokens": int,
            "steps": str,
            "problem": str,
            "ended": int,
        },
        pk=("run_id", "position", "number"),
        not_null={"conversation", "output_text", "chunks"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    db.table("samples").create(
        {"run_id": str, "position": int, "ms": float, "counters": str},
        pk=("run_id", "position", "ms"),
        not_null={"counters"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    db.table("runs").create_index(["created_at"])


@migrations(name="002_trials")
def trials(db: Database) -> None:
    """Each side's trials, one a round: counters move there from the sides, and requests name their round."""
    db.table("trials").create(
        {
            "run_id": str,
            "position": int,
            "round": int,
            "started_ms": float,
            "before": str,
            "after": str,
            "complete": int,
        },
        pk=("run_id", "position", "round"),
        not_null={"started_ms", "complete"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    # What was raced before: one trial a side.
    db.conn.execute(
        "INSERT INTO trials SELECT run_id, position, 0, 0.0, before, after, "
        "(SELECT status = 'done' FROM runs WHERE id = run_id) FROM sides"
    )
    db.table("sides").transform(drop={"before", "after"})
    db.table("requests").add_column("round", int, not_null_default=0)
    db.table("requests").transform(pk=("run_id", "position", "round", "number"))
    db.table("runs").add_column("measurement", str)
    db.table("runs").add_column("outputs", str)


@migrations(name="003_attached")
def attached(db: Database) -> None:
    """A side may be an attached endpoint: what that one lacks."""
    db.table("sides").add_column("missing", str)


@migrations(name="004_sweeps")
def sweeps(db: Database) -> None:
    """Sweeps, their points, and which runs are a sweep's; a side's own load profile, and its start's time."""
    db.table("sweeps").create(
        {
            "id": str,
            "created_at": str,
            "status": str,
            "preset": str,
            "plan": str,
            "case": str,
            "problem": str,
        },
        pk="id",
        not_null={"created_at", "status", "plan", "case"},
    )
    db.table("points").create(
        {"sweep_id": str, "number": int, "values": str, "run_id": str},
        pk=("sweep_id", "number"),
        not_null={"values"},
        foreign_keys=[("sweep_id", "sweeps", "id"), ("run_id", "runs", "id")],
    )
    db.table("sweeps").create_index(["created_at"])
    db.table("runs").add_column("sweep_id", str)
    db.table("sides").add_column("profile", str)
    db.table("sides").add_column("ready_after_s", float)


@migrations(name="007_accuracy")
def accuracy(db: Database) -> None:
    """The questions of the accuracy check, and every side's answers."""
    db.table("runs").add_column("accuracy", str)


@migrations(name="008_harness")
def harness(db: Database) -> None:
    """The scores of lm-evaluation-harness."""
    db.table("runs").add_column("harness", str)


@migrations(name="009_conversations")
def conversations(db: Database) -> None:
    """A conversation once for all the requests that sent it. Earlier requests keep their text: see
    `conversations.py`."""
    db.table("conversations").create(
        {"id": int, "hash": str, "text": str}, pk="id", not_null={"hash", "text"}
    ).create_index(["hash"], unique=True)
    # SQLite's own way, which only notes the column; the library's would copy the table.
    db.conn.execute("ALTER TABLE requests ADD COLUMN conversation_id INTEGER REFERENCES conversations(id)")


@migrations(name="010_search")
def search(db: Database) -> None:
    """What lists and searches read. Earlier runs' texts and models are indexed later, a few at a time: see
    `search.py`."""
    db.table("entries").create(
        {"number": int, "id": str, "listed": str, "preset": str, "indexed": int},
        pk="number",
        not_null={"id", "listed", "indexed"},
        defaults={"indexed": 0},
    )
    db.table("entries").create_index(["id"], unique=True)
    db.table("entries").create_index(["preset"])
    db.table("models").create({"id": int, "name": str}, pk="id", not_null={"name"})
    db.table("models").create_index(["name"], unique=True)
    for statement in (
        "CREATE INDEX entries_to_index ON entries (number) WHERE indexed = 0",
        "CREATE TABLE entry_models"
        " (number INTEGER, model_id INTEGER, PRIMARY KEY (number, model_id)) WITHOUT ROWID",
        "CREATE INDEX entries_of_model ON entry_models (model_id, number)",
        # The words only, without the texts themselves; three letters each, so that any part of a word is found,
        # of a language without spaces too.
        "CREATE VIRTUAL TABLE texts USING fts5(text, content='', columnsize=0, tokenize='trigram')",
        "CREATE INDEX runs_running ON runs (id) WHERE status = 'running'",
        "CREATE INDEX sides_started ON sides (device, run_id) WHERE ready_after_s IS NOT NULL",
        "INSERT OR IGNORE INTO entries (id, listed, preset) SELECT id, listed, preset FROM"
        " (SELECT id, coalesce(sweep_id, id) AS listed, preset, created_at FROM runs"
        " UNION ALL SELECT id, id, preset, created_at FROM sweeps) ORDER BY created_at",
    ):
        db.conn.execute(statement)


@migrations(name="011_results")
def results(db: Database) -> None:
    """What came out, for lists, sorting and filters; what people add to it; when it was deleted. Earlier runs'
    results are filled in later, a few at a time: see `results.py`."""
    for column in (
        "summarised INTEGER NOT NULL DEFAULT 0",
        "rates TEXT",
        "rate FLOAT",
        "verdict TEXT",
        "side TEXT",
        "speed_up FLOAT",
        "low FLOAT",
        "high FLOAT",
        "machine TEXT",
        "version TEXT",
        "star INTEGER NOT NULL DEFAULT 0",
        "tags TEXT NOT NULL DEFAULT ''",
        "note TEXT NOT NULL DEFAULT ''",
        "deleted_at FLOAT",
    ):
        db.conn.execute(f"ALTER TABLE entries ADD COLUMN {column}")
    for statement in (
        # A point's result is its sweep's.
        "UPDATE entries SET summarised = 1 WHERE id != listed",
        "CREATE INDEX entries_to_summarise ON entries (number) WHERE summarised = 0",
        "CREATE INDEX entries_listed ON entries (listed)",
        "CREATE INDEX entries_speed_up ON entries (speed_up) WHERE speed_up IS NOT NULL",
        "CREATE INDEX entries_rate ON entries (rate) WHERE rate IS NOT NULL",
        "CREATE INDEX entries_verdict ON entries (verdict) WHERE verdict IS NOT NULL",
        "CREATE INDEX entries_machine ON entries (machine) WHERE machine IS NOT NULL",
        "CREATE INDEX entries_version ON entries (version) WHERE version IS NOT NULL",
        "CREATE INDEX entries_star ON entries (star) WHERE star = 1",
        "CREATE INDEX entries_deleted ON entries (deleted_at) WHERE deleted_at IS NOT NULL",
    ):
        db.conn.execute(statement)


@migrations(name="012_prompts")
def prompts(db: Database) -> None:
    """What was read of a prompts file, and what was skipped."""
    db.table("runs").add_column("prompts", str)


@migrations(name="013_earlier")
def earlier(db: Database) -> None:
    """The run that a run repeats."""
    db.table("runs").add_column("earlier", str)


@migrations(name="014_path")
def path(db: Database) -> None:
    """What each side's engine says of how it works."""
    db.table("sides").add_column("path", str)


@migrations(name="015_start")
def start(db: Database) -> None:
    """The stages of each engine's start, with their seconds."""
    db.table("sides").add_column("start", str)


@migrations(name="016_reported")
def reported(db: Database) -> None:
    """Results of other tools: the document of each side, as the tool wrote it."""
    db.table("sides").add_column("reported", str)


@migrations(name="017_energy")
def energy(db: Database) -> None:
    """What a trial's GPUs took."""
    db.table("trials").add_column("energy_j", float)


@migrations(name="018_pages")
def pages(db: Database) -> None:
    """Lists ordered by a figure are read from an index alone; each tag has its lines."""
    for statement in (
        "DROP INDEX entries_rate",
        "DROP INDEX entries_speed_up",
        *(
            f"CREATE INDEX entries_by_{figure} ON entries"
            f" ({figure}, id, listed, deleted_at, preset, machine, version, verdict, star)"
            f" WHERE {figure} IS NOT NULL AND id = listed AND deleted_at IS NULL"
            for figure in ("rate", "speed_up")
        ),
        "CREATE TABLE entry_tags (tag TEXT, number INTEGER, PRIMARY KEY (tag, number)) WITHOUT ROWID",
        "CREATE INDEX tags_of_entry ON entry_tags (number)",
    ):
        db.conn.execute(statement)
    for number, tags in list(db.conn.execute("SELECT number, tags FROM entries WHERE tags != ''")):
        rows = ((tag, number) for tag in tags.split())
        db.conn.executemany("INSERT OR IGNORE INTO entry_tags VALUES (?, ?)", rows)


@migrations(name="019_countable")
def countable(db: Database) -> None:
    """The index of texts again, with its rows' sizes: without them no program can list or count what is in it. It
    is filled as ever, a few runs at a time."""
    for statement in (
        "DROP TABLE texts",
        "CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='trigram')",
        "DELETE FROM entry_models",
        "UPDATE entries SET indexed = 0",
    ):
        db.conn.execute(statement)


@migrations(name="020_limited")
def limited(db: Database) -> None:
    """How often an endpoint's rate limit made a trial's requests wait; what its tokens cost."""
    db.table("trials").add_column("limited", int)
    db.table("sides").add_column("token_prices", str)


@migrations(name="021_owner")
def owner(db: Database) -> None:
    """Which visitor started a run or sweep; none: the host."""
    db.conn.execute("ALTER TABLE entries ADD COLUMN owner TEXT")
