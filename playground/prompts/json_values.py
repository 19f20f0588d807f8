"""Reads a JSON text of any size value by value: the elements of a list, or values one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

BLOCK = 1 << 18
# An entry may have more characters than a conversation: escapes, and keys that are ignored.
LONGEST = 64_000_000
# A fault so near to the end of what was read may only be a value that is cut off there.
CUT_OFF = 64
# A number with more digits may not fit into 64 bits.
MOST_DIGITS = 18
SPACE = re.compile(r"[ \t\r\n]*")
# Keys under which files keep their list of entries.
LISTS = frozenset(
    [
        "data",
        "prompts",
        "rows",
        "examples",
        "questions",
        "instances",
        "entries",
        "samples",
        "records",
        "dataset",
        "requests",
        "train",
        "test",
    ]
)


class Readable(Protocol):
    """A text, read block by block; nothing once it has ended."""

    def read(self, size: int, /) -> str: ...


class JsonFault(Exception):
    """`detail` says what is wrong, at `line`; None: values are nested too deeply or too long."""

    def __init__(self, detail: str | None, line: int) -> None:
        super().__init__(detail, line)
        self.detail = detail
        self.line = line


def number(digits: str) -> int | float:
    """An int, or a float for a very long number: Python refuses to parse thousands of digits as an int."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


DECODER = json.JSONDecoder(parse_int=number)


class JsonValues:
    """Iterates over the entries of a text. Raises JsonFault where it is no JSON."""

    def __init__(self, text: Readable) -> None:
        self._text = text
        self._buffer = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def __iter__(self) -> Iterator[Any]:
        while self._peek():
            if self._peek() == "[":
                yield from self._elements()
            elif self._peek() == "{":
                yield from self._object()
            else:
                yield self._value()
            # Some tools write a comma after each line.
            if self._peek() == ",":
                self._at += 1

    def _elements(self) -> Iterator[Any]:
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield self._value()
            if (sign := self._peek()) not in (",", "]"):
                raise self._fault("Expecting ',' delimiter")
            self._at += 1
            if sign == "]":
                return

    def _object(self) -> Iterator[Any]:
        """The object as an entry; or, if it wraps a list of entries, those."""
        self._at += 1
        entry: dict[str, Any] = {}
        while (sign := self._peek()) != "}":
            if entry and sign != ",":
                raise self._fault("Expecting ',' delimiter")
            if entry:
                self._at += 1
            if self._peek() != '"':
                raise self._fault("Expecting property name enclosed in double quotes")
            key = self._value()
            if self._peek() != ":":
                raise self._fault("Expecting ':' delimiter")
            self._at += 1
            if self._peek() == "[" and key.lower() in LISTS:
                yield from self._elements()
                # The rest describes the list.
                entry = {"": None}
                while self._peek() == ",":
                    self._at += 1
                    self._value()
                    if self._peek() == ":":
                        self._at += 1
                        self._value()
                if self._peek() != "}":
                    raise self._fault("Expecting ',' delimiter")
                self._at += 1
                return
            entry[key] = self._value()
        self._at += 1
        yield entry

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._buffer, self._at)
                if end < len(self._buffer) or self._ended:
                    break
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated") or error.pos + CUT_OFF > len(self._buffer)
                if self._ended or not cut_off:
                    self._line += self._buffer.count("\n", self._at, error.pos)
                    raise JsonFault(error.msg, self._line) from error
            except RecursionError as error:
                raise JsonFault(None, self._line) from error
            if len(self._buffer) - self._at > LONGEST:
                raise JsonFault(None, self._line)
            # As much again: a long value is not decoded once for each block.
            self._more(len(self._buffer) - self._at)
        self._line += self._buffer.count("\n", self._at, end)
        self._at = end
        return value

    def _peek(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            end = SPACE.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            self._line += self._buffer.count("\n", self._at, end)
            self._at = end
            if end < len(self._buffer):
                return self._buffer[end]
            if self._ended:
                return ""
            self._more(BLOCK)

    def _more(self, size: int) -> None:
        block = self._text.read(max(size, BLOCK))
        self._ended = not block
        self._buffer, self._at = self._buffer[self._at :] + block, 0

    def _fault(self, detail: str) -> JsonFault:
        return JsonFault(detail, self._line)
