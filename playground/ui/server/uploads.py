"""Uploaded files: anybody who reaches the page can send one, and all of them together have a limit."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from playground.workers import Workers

UPLOADS = Workers("uploads", 1)
# What a file counts for at least, in bytes: a file system holds only so many, and each upload looks at all.
LEAST_BYTES = 100_000


def make_room(folder: Path, most_bytes: int) -> None:
    """Delete the oldest files of the folder, with their folders, until the others have at most so many bytes, each
    LEAST_BYTES or more. Blocking."""
    files = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue
            files.append((status.st_mtime, max(status.st_size, LEAST_BYTES), path))
    held = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if held <= most_bytes:
            break
        path.unlink(missing_ok=True)
        if path.parent != folder:
            # Others may be in it.
            with contextlib.suppress(OSError):
                path.parent.rmdir()
        held -= size
