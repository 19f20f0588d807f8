"""A text that a verb reads: a file, or standard input for "-"."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from playground.domain.errors import InvalidInput
from playground.domain.unicode import mended


def text_of(name: str, most_bytes: int) -> str:
    """The text, UTF-8 or, by its mark at the beginning, UTF-16. Raises InvalidInput for a file that can't be read,
    is no text, or has more bytes."""
    shown = mended("-" if name == "-" else Path(name).name)
    try:
        if name == "-":
            content = sys.stdin.buffer.read(most_bytes + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(most_bytes + 1)
    except OSError as error:
        raise InvalidInput("text.unreadable", file=shown, detail=error.strerror or type(error).__name__) from error
    except ValueError as error:
        # Python refuses the name: it contains a null byte.
        raise InvalidInput("text.unreadable", file=shown, detail=str(error)) from error
    if len(content) > most_bytes:
        raise InvalidInput("text.too_large", file=shown, limit=most_bytes)
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return content.decode("utf-16" if content.startswith(marks) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidInput("text.no_text", file=shown, line=line) from error
