"""Folders and files that no other user of the machine can read, change or lead elsewhere.

What is at a path is looked at, never followed: somebody else may have put a link there first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from playground.domain.errors import InvalidInput

OTHERS = stat.S_IRWXG | stat.S_IRWXO
# SQLite gives its other files the database's permissions when it makes them.
DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")


def private_folder(path: Path, variable: str) -> None:
    """Make the folder, for us alone, or check the one that is there. `variable` is the setting that names it.

    Raises InvalidInput for a link, for a folder of another user or open to others, and for one that can't be
    written.
    """
    with _explained(path, variable):
        make_folder(path)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise InvalidInput("private.no_folder", path=str(path), variable=variable)
        if status.st_uid != os.geteuid():
            raise InvalidInput("private.foreign", path=str(path), variable=variable)
        if status.st_mode & OTHERS:
            raise InvalidInput("private.open", path=str(path), variable=variable)


def check_space(path: Path, variable: str) -> None:
    """Raises InvalidInput if nothing can be written to the folder: its disk is full, or may not be written."""
    with _explained(path, variable), tempfile.TemporaryFile(dir=path) as trial:
        trial.write(bytes(4096))
        trial.flush()


def private_database(path: Path, variable: str) -> None:
    """Make an empty file for a database, in a folder of its own where there is none; or make the database that is
    there ours alone.

    A folder that holds other things, too, is left as it is: it may be a home. Raises InvalidInput for a link, for
    a file of another user, and for a folder in which everybody may make files.
    """
    names = {path.name + suffix for suffix in DATABASE_SUFFIXES}
    with _explained(path, variable):
        make_folder(path.parent)
        folder = path.parent.stat()
        if folder.st_mode & stat.S_IWOTH:
            raise InvalidInput("private.shared", path=str(path.parent), variable=variable)
        if folder.st_uid == os.geteuid() and {entry.name for entry in path.parent.iterdir()} <= names:
            path.parent.chmod(0o700)
        with contextlib.suppress(FileExistsError):
            fresh_file(path, replace=False).close()
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                _make_private(path.with_name(name), variable)


def _make_private(file: Path, variable: str) -> None:
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput("private.no_file", path=str(file), variable=variable)
    # The administrator may open anybody's.
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise InvalidInput("private.foreign", path=str(file), variable=variable)
    if status.st_mode & OTHERS:
        file.chmod(0o600)


def fresh_file(path: Path, *, replace: bool = True) -> BinaryIO:
    """A new file, for us alone, open for writing. What was there before, a link too, is removed and not written
    to; FileExistsError if it may not be replaced."""
    if replace:
        path.unlink(missing_ok=True)
    # Appending: a log is shortened while it is written.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def write_whole(path: Path, text: str) -> None:
    """Write a file, for us alone, so that a reader sees the old text or the new one. Raises OSError."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with fresh_file(partial) as file:
            file.write(text.encode())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def process_folder(parent: Path, name: str, variable: str) -> Iterator[Path]:
    """A private folder of this process in `parent`: empty at first, and removed at the end, as are those of
    processes that are gone."""
    for leftover in parent.glob(f"{name}-*"):
        if not _runs(leftover.name.rpartition("-")[2]):
            shutil.rmtree(leftover, ignore_errors=True)
    path = parent / f"{name}-{os.getpid()}"
    shutil.rmtree(path, ignore_errors=True)
    private_folder(path, variable)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def make_folder(folder: Path) -> None:
    """Make the folder, for us alone; one that is there is left as it is. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)


@contextmanager
def _explained(path: Path, variable: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        detail = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidInput("private.unusable", path=str(path), variable=variable, detail=detail) from error
