"""The database's file: opening it, connections, and what its errors mean. One connection an operation, so none is
shared between threads; WAL; every write inside BEGIN IMMEDIATE."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from sqlite_utils import Database

from playground import private_files
from playground.domain.errors import InvalidInput, WorkFailed

from .migrations import migrations

# How long an operation waits for another process that writes. A reader waits only for one that locks it out.
READ_TIMEOUT_S = 1.0
WRITE_TIMEOUT_S = 3.0
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class DatabaseFile:
    """One SQLite file. Operations open it when they need it; whatever failed is tried again by the next one.

    Every operation raises InvalidInput for a file that can't be used and WorkFailed for one that is locked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opening = Lock()
        self._opened = False

    def open(self, timeout_s: float = WRITE_TIMEOUT_S) -> None:
        """Make the file if there is none, and bring an older one's shape up to date. Once that is done, nothing
        more happens."""
        if self._opened:
            return
        with self._explained(timeout_s):
            # Another thread may be bringing a large database up to date.
            if not self._opening.acquire(timeout=timeout_s):
                raise WorkFailed("history.updating", path=str(self._path))
            try:
                if not self._opened:
                    self._bring_up_to_date(timeout_s)
                self._opened = True
            finally:
                self._opening.release()

    def _bring_up_to_date(self, timeout_s: float) -> None:
        private_files.private_database(self._path, "PLAYGROUND_DB")
        with self._connection(timeout_s) as db:
            db.execute("PRAGMA journal_mode=WAL")
            # A database of a newer version has steps unknown here, and opens as far as it can be read.
            if migrations.pending(db):
                with _immediate(db):
                    migrations.apply(db)

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """A connection for queries, which all see the database as it was at the first of them."""
        self.open(READ_TIMEOUT_S)
        with self._explained(READ_TIMEOUT_S), self._connection(READ_TIMEOUT_S) as db:
            db.conn.execute("BEGIN")
            yield db

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """A connection in a transaction, which is rolled back by any error."""
        self.open()
        with self._explained(WRITE_TIMEOUT_S), self._connection(WRITE_TIMEOUT_S) as db, _immediate(db):
            yield db

    @contextmanager
    def maintaining(self) -> Iterator[Database]:
        """A connection without a transaction, which checks no foreign keys."""
        self.open()
        with self._explained(WRITE_TIMEOUT_S), self._connection(WRITE_TIMEOUT_S) as db:
            db.conn.execute("PRAGMA foreign_keys=OFF")
            yield db

    @contextmanager
    def _connection(self, timeout_s: float) -> Iterator[Database]:
        # SQLite makes no file by itself: others could read it.
        address = f"{self._path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, uri=True, timeout=timeout_s, isolation_level=None)
        connection.text_factory = _text
        connection.row_factory = _row
        try:
            connection.execute("PRAGMA foreign_keys=ON")
            yield Database(connection)
        finally:
            connection.close()

    @contextmanager
    def _explained(self, timeout_s: float) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in LOCKED:
                raise WorkFailed("history.locked", path=str(self._path), seconds=timeout_s) from error
            # The file may have been deleted, emptied or replaced: the next operation makes it usable again.
            self._opened = False
            raise InvalidInput("history.unusable", path=str(self._path), detail=str(error)) from error


def _text(content: bytes) -> str:
    """Bytes that are no text must not keep the rows beside them from being read."""
    return content.decode(errors="replace")


def _row(_: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
    # No column is meant for bytes.
    return tuple(_text(value) if isinstance(value, bytes) else value for value in values)


@contextmanager
def _immediate(db: Database) -> Iterator[None]:
    """IMMEDIATE: a deferred transaction that has read can't wait for another writer, it fails instead."""
    db.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.conn.rollback()
        raise
    db.conn.execute("COMMIT")
