"""Uploaded files: anybody who reaches the page can send one, and all of them together have a limit."""

from __future__ import annotations

import os
from pathlib import Path

from playground.workers import Workers

UPLOADS = Workers("uploads", 1)


def make_room(folder: Path, most_bytes: int) -> None:
    """Delete the oldest files of the folder until the others have at most so many bytes. Blocking."""
    files = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue
            files.append((status.st_mtime, status.st_size, path))
    held = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if held <= most_bytes:
            break
        path.unlink(missing_ok=True)
        held -= size
