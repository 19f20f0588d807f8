"""The kinds of text files: each gives its entries with their places. They read as far as they are asked."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from playground.domain.errors import InvalidInput
from playground.domain.message import Message

from .entry import KEYS
from .json_values import LONGEST, JsonFault, JsonValues, Readable, number

Placed = tuple[Message, object]
# In this order: a header that has a prompt in it by an earlier one is not looked at by a later one.
DELIMITERS = ",;\t|"

csv.field_size_limit(LONGEST)


def line(value: int) -> Message:
    return Message("prompts.line", {"number": value})


def _lines(text: TextIO, file: str) -> Iterator[str]:
    """Lines with their ends. Raises InvalidInput for one that is too long to be in memory."""
    count = 0
    while part := text.readline(LONGEST):
        count += 1
        if len(part) >= LONGEST:
            raise InvalidInput("prompts.too_long", file=file, place=line(count), limit=LONGEST)
        yield part


def lines(text: TextIO, file: str) -> Iterator[Placed]:
    """A prompt on each line that is not blank."""
    for count, part in enumerate(_lines(text, file), 1):
        if part.strip():
            yield line(count), part.strip()


def json_lines(text: TextIO, file: str) -> Iterator[Placed]:
    """An object on each line; or, whatever its name says, a list or objects over several lines."""
    for count, part in enumerate(_lines(text, file), 1):
        if not part.strip():
            continue
        if count == 1 and (part.lstrip().startswith("[") or part.strip() == "{"):
            yield from json_text(_Again(part, text), file)
            return
        try:
            yield line(count), json.loads(part, parse_int=number)
        except json.JSONDecodeError as error:
            raise InvalidInput("prompts.not_json", file=file, place=line(count), detail=error.msg) from error
        except RecursionError as error:
            raise InvalidInput("prompts.bad_entry", file=file, place=line(count)) from error


class _Again:
    """A text of which the first line was read already."""

    def __init__(self, first: str, rest: TextIO) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int, /) -> str:
        first, self._first = self._first, ""
        return first or self._rest.read(size)


def json_text(text: Readable, file: str) -> Iterator[Placed]:
    """A list of entries, an object around one, or entries one after the other."""
    count = 0
    try:
        for count, entry in enumerate(JsonValues(text), 1):
            yield Message("prompts.entry", {"number": count}), entry
    except JsonFault as fault:
        if fault.detail is None:
            place = Message("prompts.entry", {"number": count + 1})
            raise InvalidInput("prompts.bad_entry", file=file, place=place) from fault
        raise InvalidInput("prompts.not_json", file=file, place=line(fault.line), detail=fault.detail) from fault


def table(text: TextIO, file: str) -> Iterator[Placed]:
    """A row below a header, cells separated by what the header is separated by."""
    source = _lines(text, file)
    header, skipped = next(source, ""), 0
    if header.lower().startswith("sep=") and len(header.strip()) == 5:
        # A spreadsheet's own line.
        header, skipped = next(source, ""), 1
    delimiter = next((sign for sign in DELIMITERS if KEYS & set(_columns(header, sign))), ",")
    rows = csv.reader(chain([header], source), strict=True, delimiter=delimiter)
    try:
        columns = [name.strip().lower() for name in next(rows, [])]
        if not KEYS & set(columns):
            raise InvalidInput("prompts.no_column", file=file, columns=", ".join(columns) or "-")
        for row in rows:
            place = line(rows.line_num + skipped)
            if len(row) > len(columns):
                raise InvalidInput(
                    "prompts.too_many_cells", file=file, place=place, cells=len(row), columns=len(columns)
                )
            if row:
                yield place, {**dict.fromkeys(columns), **dict(zip(columns, row, strict=False))}
    except csv.Error as error:
        place = line(rows.line_num + skipped)
        raise InvalidInput("prompts.not_csv", file=file, place=place, detail=str(error)) from error


def _columns(header: str, delimiter: str) -> list[str]:
    try:
        return [name.strip().lower() for row in csv.reader([header], delimiter=delimiter) for name in row]
    except csv.Error:
        return []
