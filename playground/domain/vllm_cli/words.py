"""Words of a command line: text -> words, as a shell without variables would read it; words -> options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import Knobs

# What a shell would act on. Nothing here is ever run, so each is refused rather than taken for text.
ACTED_ON = re.compile(r"\$\{?\w+\}?|\$\(|`|&&|\|\||[|;&<>()]")
IN_QUOTES = re.compile(r"\$\{?\w+\}?|\$\(|`")
# What is escaped or in quotes, which is kept; or a comment: # at the start of a word, to the end of the line.
COMMENT = re.compile(r"""(\\.|'[^']*'|"(?:\\.|[^"\\])*")|(?<!\S)#[^\n]*""", re.DOTALL)
# A backslash or, on Windows, a caret at the end of a line; blanks after it are a common slip.
CONTINUED = re.compile(r"[\\^][ \t]*\r?\n")


def words(text: str) -> list[str]:
    """The words. Raises InvalidInput for what only a shell could resolve, and for quotes that do not close."""
    text = CONTINUED.sub(" ", COMMENT.sub(lambda match: match[1] or "", text))
    if piece := _acted_on(text):
        raise InvalidInput("paste.shell", what=piece)
    try:
        return shlex.split(text)
    except ValueError:
        raise InvalidInput("paste.quotes", quote=_open_quote(text) or "\\") from None


def _acted_on(text: str) -> str | None:
    """The first piece that a shell would act on, outside of single quotes."""
    for quote, start, end in _pieces(text):
        pattern = {"": ACTED_ON, '"': IN_QUOTES}.get(quote)
        if pattern and (match := pattern.search(text, start, end)):
            return match[0]
    return None


def _open_quote(text: str) -> str:
    return [quote for quote, _, _ in _pieces(text)][-1]


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """(quote, start, end): stretches of the text that are outside of quotes, or inside of one kind."""
    quote, start, at = "", 0, 0
    while at < len(text):
        mark = text[at]
        if mark == "\\" and quote != "'":
            yield quote, start, at
            start = at = at + 2
            continue
        if mark == quote or (not quote and mark in "\"'"):
            yield quote, start, at
            quote, start = "" if quote else mark, at + 1
        at += 1
    yield quote, start, len(text)


def bare(flag: str) -> str:
    """A flag as a key: `--max-num-seqs` is `max_num_seqs`."""
    return flag.lstrip("-").replace("-", "_")


def options(words: Iterable[str]) -> Iterator[list[str]]:
    """Words of a command line, each option with its values. What comes before the first option comes alone."""
    waiting = list(words)
    while waiting:
        first, *rest = waiting
        values = list(takewhile(lambda word: not is_option(word), rest)) if takes_values(first) else []
        yield [first, *values]
        waiting = rest[len(values) :]


def is_option(word: str) -> bool:
    """Whether it is a flag; a negative number is none."""
    return re.match(r"--?[A-Za-z]", word) is not None


def takes_values(word: str) -> bool:
    """Whether the words after it are its values. vLLM's switches begin in one of few ways, or are known knobs."""
    name = bare(word)
    if not is_option(word) or "=" in word:
        return False
    field = Knobs.model_fields.get(name)
    switch = name.startswith(("enable_", "disable_", "no_", "use_", "trust_"))
    return not switch and not (field is not None and "bool" in str(field.annotation))


def split(words: list[str]) -> tuple[str, Any]:
    """An option's key and value: True for a switch, a list where several values follow."""
    name, equals, value = words[0].partition("=")
    if equals:
        return bare(name), value
    rest = words[1:]
    return bare(name), rest[0] if len(rest) == 1 else rest or True
