"""What a verb reads, a file or standard input for "-", and the JSON document that it prints."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from playground.domain.errors import InvalidInput
from playground.domain.unicode import mended
from playground.report.documents.parts import json_text


@contextmanager
def opened(name: str) -> Iterator[tuple[str, BinaryIO]]:
    """The name to show and the open file. Raises InvalidInput for a file that can't be read."""
    shown = mended("-" if name == "-" else Path(name).name)
    if "\0" in name:
        # No file has such a name.
        raise InvalidInput("text.unreadable", file=shown, detail="null byte")
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            yield shown, file
    except OSError as error:
        raise InvalidInput("text.unreadable", file=shown, detail=error.strerror or type(error).__name__) from error


def text_of(name: str, most_bytes: int) -> str:
    """The text, UTF-8 or, by its mark at the beginning, UTF-16. Raises InvalidInput for a file that can't be read,
    is no text, or has more bytes."""
    with opened(name) as (shown, file):
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise InvalidInput("text.too_large", file=shown, limit=most_bytes)
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return content.decode("utf-16" if content.startswith(marks) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidInput("text.no_text", file=shown, line=line) from error


def print_json(document: Any) -> None:
    print(json_text(document), end="")


@contextmanager
def refusal(document: Callable[[InvalidInput], Any], arguments: argparse.Namespace) -> Iterator[None]:
    """With --json, an InvalidInput raised inside is printed as such a document as well."""
    try:
        yield
    except InvalidInput as error:
        if arguments.json:
            print_json(document(error))
        raise
