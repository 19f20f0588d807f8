"""Reads a prompts file of any size, as a stream."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from playground.domain.errors import InvalidInput
from playground.domain.limits import DEFAULTS, Limits
from playground.domain.record.prompts import PromptsRead
from playground.domain.spec.workload import Prompt
from playground.domain.unicode import mended

from . import formats
from .entry import prompts_of
from .parquet import rows
from .sample import Remarks, Sample

TEXTS = {
    ".txt": formats.lines,
    ".jsonl": formats.json_lines,
    ".ndjson": formats.json_lines,
    ".json": formats.json_text,
    ".csv": formats.table,
    ".tsv": formats.table,
}
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
SUFFIXES = (*TEXTS, ".gz", ".parquet")
GZIP = b"\x1f\x8b"


# A small packed file may hold terabytes.
MOST_UNPACKED = 2_000_000_000


class _Packed(gzip.GzipFile):
    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        if self.tell() > MOST_UNPACKED:
            raise OSError(f"more than {MOST_UNPACKED:,} bytes unpacked; unpack it first")
        return content


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts, and what was read of their file; None where there is no file."""

    prompts: tuple[Prompt, ...]
    read: PromptsRead | None = None


def read(path: Path, limits: Limits = DEFAULTS, seed: int = 0) -> PromptSet:
    """The prompts of a file in order, at least one; a sample where it has more than the limit.

    Raises InvalidInput for a file that can't be read, an entry that can't be understood, and what is above the
    other limits.
    """
    sample, skipped, changed = Sample(limits, seed), Remarks(), Remarks()
    with _entries(path) as entries:
        for place, entry in entries:
            for item in prompts_of(entry, path.name, place):
                if item.prompt is not None:
                    sample.add(item.prompt)
                if item.why is not None:
                    (skipped if item.prompt is None else changed).add(item.why, place)
    if not sample.read:
        if remarks := skipped.all():
            count, first = sum(remark.count for remark in remarks), remarks[0]
            raise InvalidInput(
                "prompts.all_skipped", file=path.name, count=count, why=first.why, place=first.first[0]
            )
        raise InvalidInput("prompts.none", file=path.name)
    return PromptSet(sample.prompts(), sample.read_with(skipped, changed))


@contextmanager
def _entries(path: Path) -> Iterator[Iterator[formats.Placed]]:
    """The file's entries with their places. What goes wrong while they are read is told as InvalidInput."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = suffixes[-1 - packed] if len(suffixes) > packed else ""
    try:
        if kind == ".parquet" and not packed:
            yield rows(path)
            return
        if kind not in TEXTS:
            raise InvalidInput("prompts.kind", file=path.name)
        with path.open("rb") as file, _text(file) as text:
            yield TEXTS[kind](text, path.name)
    except UnicodeDecodeError as error:
        raise InvalidInput("prompts.not_utf8", file=path.name, place=formats.line(_bad_line(path))) from error
    except OSError as error:
        detail = error.strerror or str(error)
        raise InvalidInput("prompts.unreadable", file=path.name, detail=detail) from error
    except (EOFError, zlib.error) as error:
        raise InvalidInput("prompts.unreadable", file=path.name, detail=str(error)) from error
    except ValueError as error:
        # Python refuses the name: it contains a null byte or half an emoji.
        raise InvalidInput("prompts.unreadable", file=mended(path.name), detail=str(error)) from error


def _text(file: BinaryIO) -> TextIO:
    """The file as text: UTF-8, or what its first bytes say; unpacked if it is packed."""
    binary = io.BufferedReader(cast(io.RawIOBase, file))
    if binary.peek(2)[:2] == GZIP:
        binary = io.BufferedReader(cast(io.RawIOBase, _Packed(fileobj=binary)))
    beginning = binary.peek(4)[:4]
    encoding = next((name for mark, name in MARKS.items() if beginning.startswith(mark)), "utf-8")
    return io.TextIOWrapper(binary, encoding)


def _bad_line(path: Path) -> int:
    """The number of the first line that is not UTF-8; 1 if the encoding is another one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1
