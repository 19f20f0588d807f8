"""Deletion: first hidden, so that it can be undone, and removed for good later; and by age or size."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from sqlite_utils import Database

from . import search

# How long a deletion can be undone.
UNDO_S = 3600.0
TABLES = ("samples", "requests", "trials", "sides")


def hide(db: Database, saved_id: str) -> bool:
    """Take it off the list. Returns whether there is one of that id that is over."""
    query = (
        "UPDATE entries SET deleted_at = ? WHERE listed = ?"
        " AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = entries.id AND status = 'running')"
    )
    return db.conn.execute(query, [time.time(), saved_id]).rowcount > 0


def restore(db: Database, saved_id: str) -> bool:
    change = "UPDATE entries SET deleted_at = NULL WHERE listed = ? AND deleted_at IS NOT NULL"
    return db.conn.execute(change, [saved_id]).rowcount > 0


def outlived(db: Database) -> list[str]:
    """One that was deleted too long ago to be undone, if there is any."""
    query = "SELECT listed FROM entries WHERE deleted_at < ? LIMIT 1"
    return [listed for (listed,) in db.conn.execute(query, [time.time() - UNDO_S])]


def oldest(db: Database, limit: int, before: str | None = None) -> list[str]:
    """Runs and sweeps that began first, of those that are over and have no star. `before`: an ISO time."""
    query = (
        "SELECT entries.id FROM entries LEFT JOIN runs ON runs.id = entries.id"
        " LEFT JOIN sweeps ON sweeps.id = entries.id"
        " WHERE listed = entries.id AND star = 0 AND coalesce(runs.status, sweeps.status, '') != 'running'"
        " AND (?1 IS NULL OR julianday(coalesce(runs.created_at, sweeps.created_at)) < julianday(?1))"
        " ORDER BY number LIMIT ?2"
    )
    return [saved_id for (saved_id,) in db.conn.execute(query, [before, limit])]


def remove(db: Database, listed: Iterable[str]) -> None:
    """Remove these runs and sweeps, a sweep with its points. Conversations stay: others may have sent them."""
    for saved_id in listed:
        entries = list(db.query("SELECT number, id, indexed FROM entries WHERE listed = ?", [saved_id]))
        for entry in entries:
            search.forget(db, entry)
        ids = json.dumps([entry["id"] for entry in entries])
        chosen = "IN (SELECT value FROM json_each(?))"
        db.conn.execute(f"DELETE FROM points WHERE sweep_id {chosen}", [ids])
        for table in TABLES:
            db.conn.execute(f"DELETE FROM {table} WHERE run_id {chosen}", [ids])
        for table in ("runs", "sweeps", "entries"):
            db.conn.execute(f"DELETE FROM {table} WHERE id {chosen}", [ids])


def remove_unsent(db: Database) -> None:
    """Remove the conversations that no request refers to any more. Reads every request, and needs a connection
    that checks no foreign keys: it would read them again for each conversation."""
    db.conn.execute(
        "DELETE FROM conversations WHERE id NOT IN"
        " (SELECT conversation_id FROM requests WHERE conversation_id IS NOT NULL)"
    )


def used_bytes(db: Database) -> int:
    """What the database would take without its empty pages."""
    pages, free, size = (
        next(db.conn.execute(f"PRAGMA {name}"))[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
