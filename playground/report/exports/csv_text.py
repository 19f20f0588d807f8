"""Writes rows as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

# A spreadsheet computes text that begins with one of these, and a label or an answer may begin with anything.
COMPUTED = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Text that looks like a formula gets an apostrophe before it; numbers stay as they are; None is empty."""
    output = io.StringIO()
    csv.writer(output).writerows([_inert(cell) for cell in row] for row in rows)
    return output.getvalue()


def _inert(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(COMPUTED) else cell
