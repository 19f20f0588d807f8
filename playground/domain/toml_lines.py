"""On which line of a TOML file a key stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(.*)$""")
FENCES = ('"""', "'''")

Path = tuple[int | str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The first line of each table and key, by path; of inline tables and lists only the line that they begin on.

    `text` is valid TOML.
    """
    lines: dict[Path, int] = {(): 1}
    table: Path = ()
    entries: Counter[Path] = Counter()
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if fence in line else fence
        elif header := HEADER.match(line):
            table = _below(_names(header[2]), entries)
            if header[1] == "[[":
                table = (*table, entries[table])
                entries[table[:-1]] += 1
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault((*table, *_names(key[1])), number)
            fence = next((mark for mark in FENCES if key[2].count(mark) == 1), "")
    return lines


def line_of(lines: Mapping[Path, int], path: Sequence[int | str]) -> int | None:
    """The line of a path, or of the nearest table around it; None where only the whole file is around it."""
    return next((lines[tuple(path[:end])] for end in range(len(path), 0, -1) if tuple(path[:end]) in lines), None)


def _names(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _below(names: Path, entries: Mapping[Path, int]) -> Path:
    """The path with the number of the latest entry after each name of a list of tables that is not the last."""
    path: Path = ()
    for name in names[:-1]:
        path = (*path, name)
        path = (*path, entries[path] - 1) if entries[path] else path
    return (*path, *names[-1:])
