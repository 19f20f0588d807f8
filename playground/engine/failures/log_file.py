"""The lines of a log file, read from both ends where it is very long."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from playground.domain.errors import InvalidInput

from .log_lines import LONGEST_LINE

BLOCK = 2**20
# Of a file that is little but line ends.
MOST_LINES = 400_000
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# What a text has none of; a log may hold a few that a terminal left.
CONTROL = bytes({*range(32)} - {0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1B})
MOST_CONTROL = 0.01


@dataclass(frozen=True)
class LogFile:
    """`lines`: each with its number in the file, from 1. `unread_bytes`: of the middle, which was left out."""

    lines: Iterator[tuple[int, str]]
    unread_bytes: int


def read_log(file: BinaryIO, name: str, most_bytes: int) -> LogFile:
    """At most `most_bytes` of the file, half from each end. Raises InvalidInput if it is empty or no text."""
    head = file.read(most_bytes // 2)
    tail, unread, newlines = _tail(file, most_bytes - most_bytes // 2)
    encoding = next((encoding for bom, encoding in BOMS.items() if head.startswith(bom)), "utf-8")
    if encoding != "utf-8":
        head, tail = (part.decode(encoding, "replace").encode() for part in (head, tail))
    if not (head.strip() or tail.strip()):
        raise InvalidInput("explain.empty", where=name)
    if len(head) - len(head.translate(None, CONTROL)) > MOST_CONTROL * len(head):
        raise InvalidInput("explain.binary", where=name)
    if not unread:
        return _whole(head + tail)
    first, last = _first_lines(head, MOST_LINES // 2), _last_lines(tail, MOST_LINES // 2)
    skipped = head.count(b"\n") + newlines + tail.count(b"\n") - len(last) + 1
    return LogFile(chain(_numbered(first, 1), _numbered(last, skipped + 1)), unread)


def _tail(file: BinaryIO, most: int) -> tuple[bytes, int, int]:
    """The last bytes of what follows, how many bytes come before them, and how many lines end there."""
    kept, unread, newlines = bytearray(), 0, 0
    while block := file.read(BLOCK):
        kept += block
        if (over := len(kept) - most) > BLOCK:
            unread, newlines = unread + over, newlines + kept.count(b"\n", 0, over)
            del kept[:over]
    if (over := len(kept) - most) > 0:
        unread, newlines = unread + over, newlines + kept.count(b"\n", 0, over)
        del kept[:over]
    return bytes(kept), unread, newlines


def _whole(text: bytes) -> LogFile:
    count = text.count(b"\n") + 1
    if count <= MOST_LINES:
        return LogFile(_numbered(text.split(b"\n"), 1), 0)
    first, last = _first_lines(text, MOST_LINES // 2), _last_lines(text, MOST_LINES // 2)
    unread = len(text) - sum(map(len, first)) - sum(map(len, last)) - len(first) - len(last) + 1
    return LogFile(chain(_numbered(first, 1), _numbered(last, count - len(last) + 1)), unread)


def _first_lines(text: bytes, most: int) -> list[bytes]:
    lines = text.split(b"\n", most)
    return lines[:most]


def _last_lines(text: bytes, most: int) -> list[bytes]:
    lines = text.rsplit(b"\n", most)
    return lines[-most:]


def _numbered(lines: list[bytes], first: int) -> Iterator[tuple[int, str]]:
    """Each line with its number; of an endless one its two ends."""
    for number, line in enumerate(lines, start=first):
        if len(line) > 4 * LONGEST_LINE:
            line = line[: 2 * LONGEST_LINE] + b"\r" + line[-2 * LONGEST_LINE :]
        yield number, line.decode("utf-8", "replace").lstrip("\ufeff")
