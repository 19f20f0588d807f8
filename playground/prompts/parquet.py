"""Reads Parquet files, where pyarrow is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from playground.domain.errors import InvalidInput
from playground.domain.message import Message

from .formats import Placed

# So many rows are in memory at a time.
BATCH = 256


def rows(path: Path) -> Iterator[Placed]:
    """Each row as an entry. Raises InvalidInput for a file that can't be read, or if pyarrow is missing."""
    try:
        arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    except ImportError as error:
        raise InvalidInput("prompts.no_pyarrow", file=path.name) from error
    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield Message("prompts.row", {"number": number}), row
    except arrow.ArrowException as error:
        detail = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InvalidInput("prompts.unreadable", file=path.name, detail=detail) from error
