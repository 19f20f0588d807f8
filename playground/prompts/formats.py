"""The kinds of text files: each gives its entries with their places. They read as far as they are asked."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, TextIO

from playground.domain.errors import InvalidInput
from playground.domain.message import Message

from .json_values import LONGEST, JsonFault, JsonValues, Readable, number
from .keys import KEYS, key

Placed = tuple[Message, object]
# In this order: a header that has a prompt in it by an earlier one is not looked at by a later one.
DELIMITERS = ",;\t|"
# A longer list of turns is no conversation.
MOST_TURNS = 1_000
LONGEST_CHAT = 1_000_000

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
        if count == 1 and (part.strip() == "{" or (part.lstrip().startswith("[") and not _is_chat(part))):
            yield from json_text(_Again(part, text), file)
            return
        try:
            # Some tools write a comma after each line.
            yield line(count), json.loads(part.rstrip().removesuffix(","), parse_int=number)
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
    turns: list[Any] = []
    try:
        for count, entry in enumerate(JsonValues(text), 1):
            # A list of turns alone, as the OpenAI API takes it, is one conversation.
            if len(turns) == count - 1 < MOST_TURNS and _is_turn(entry):
                turns.append(entry)
                continue
            yield from _conversation(turns)
            turns = []
            yield Message("prompts.entry", {"number": count}), entry
        yield from _conversation(turns)
    except JsonFault as fault:
        if fault.detail is None:
            place = Message("prompts.entry", {"number": count + 1})
            raise InvalidInput("prompts.bad_entry", file=file, place=place) from fault
        raise InvalidInput("prompts.not_json", file=file, place=line(fault.line), detail=fault.detail) from fault


def _is_chat(part: str) -> bool:
    """Whether the line is a conversation by itself."""
    if len(part) > LONGEST_CHAT:
        return False
    try:
        turns = json.loads(part, parse_int=number)
    except (ValueError, RecursionError):
        return False
    return isinstance(turns, list) and bool(turns) and all(_is_turn(turn) for turn in turns)


def _is_turn(entry: object) -> bool:
    return isinstance(entry, dict) and entry.keys() - {"name"} == {"role", "content"}


def _conversation(turns: list[Any]) -> Iterator[Placed]:
    """One entry of several speakers' turns; of one speaker's, each is an entry."""
    several = len(turns) < MOST_TURNS and len({str(turn["role"]) for turn in turns}) > 1
    for count, entry in enumerate([turns] if several else turns, 1):
        yield Message("prompts.entry", {"number": count}), entry


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
        names = next(rows, [])
        columns = [key(name) for name in names]
        if not KEYS & set(columns):
            raise InvalidInput("prompts.no_column", file=file, columns=", ".join(names) or "-")
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
        return [key(name) for row in csv.reader([header], delimiter=delimiter) for name in row]
    except csv.Error:
        return []
