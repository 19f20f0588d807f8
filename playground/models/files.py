"""Reads files of a model, which may come from anybody: only plain ones, and only so much."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

# The most that is read of one file; the largest tokenizers have half of that.
MOST_MIB = 64
MOST_BYTES = MOST_MIB * 1024**2


def opened(file: Path) -> BinaryIO:
    """The file, open for reading. Raises OSError, and ValueError for what is no plain file: a pipe or a terminal,
    also at the end of a link, would keep its reader waiting for ever."""
    stream = os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise ValueError(f"{file.name}: not a plain file")
    return stream


def content(file: Path) -> bytes:
    """The whole file. Raises ValueError for one that is no plain file, or too large, and OSError."""
    with opened(file) as stream:
        whole = stream.read(MOST_BYTES + 1)
    if len(whole) > MOST_BYTES:
        raise ValueError(f"{file.name}: more than {MOST_MIB} MiB")
    return whole
