"""Shell text -> words: quotes, escapes and variables as a shell reads them.

What only a shell could resolve is marked at its word: whoever needs that word refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from playground.domain.errors import InvalidInput

from ..notes import Notes

MOST_FILLED = 100_000
DEFAULT = re.compile(r"(\w+):?[-=]([^{}$`]*)")
VARIABLE = re.compile(r"\$(?:(?P<bare>[A-Za-z_]\w*|[0-9@*#?!-])|\{(?P<braced>[^{}\n]*)\})|%(?P<dos>[A-Za-z_]\w*)%")
# A backslash, Windows' caret or PowerShell's backtick at the end of a line; blanks and comments after it are
# slips. A shell shows > before the next line.
CONTINUED = re.compile(r"[\\^`](?P<slip>[ \t]*(?:(?<=[ \t])#[^\n]*)?)(?:\n|\Z)(?:[ \t]*>[ \t])?")
PLAIN = re.compile(r"[^\s\\'\"$`^%&|;<>()#]+")
# What a document wants replaced, as in <model>.
PLACEHOLDER = re.compile(r"<[A-Za-z](?:[\w ./|-]*\w)?>")
DRIVE = re.compile(r"[A-Za-z]:\Z")


@dataclass(frozen=True, slots=True)
class Word:
    """`acted_on`: the first piece that only a shell could resolve, None where the text is final. `resolved`: names
    and values of the variables in it."""

    text: str
    acted_on: str | None = None
    resolved: tuple[tuple[str, str], ...] = ()


def unresolved(piece: str) -> InvalidInput:
    """The refusal of a piece of text without a value: a document's <placeholder>, a shell's, or a program's."""
    if PLACEHOLDER.fullmatch(piece):
        return InvalidInput("paste.placeholder", what=piece)
    return InvalidInput("paste.shell" if re.match(r"[$`%()]", piece) else "paste.program_value", what=piece)


def plain(words: Sequence[str]) -> list[Word]:
    return [Word(word) for word in words]


class WordReader:
    """Reads words at `_at`, with the variables that are set so far."""

    def __init__(self, text: str, notes: Notes, variables: Mapping[str, Sequence[Word]]) -> None:
        self._text = text
        self._notes = notes
        self._at = 0
        self._variables: dict[str, list[Word]] = {name: [*value] for name, value in variables.items()}
        # Characters that variables added: each may hold the one before it twice.
        self._filled = 0
        self._unclosed = False

    def _skipped_blanks(self) -> bool:
        start = self._at
        if match := CONTINUED.match(self._text, start):
            self._at = match.end()
            if match["slip"]:
                self._notes.say("paste.slip")
        elif self._text[start] != "\n" and self._text[start].isspace():
            self._at += 1
        elif self._text[start] == "#":
            self._at = end if (end := self._text.find("\n", start)) >= 0 else len(self._text)
            # Without a value that may be a secret.
            self._notes.leave(self._text[start : min(self._at, start + 80)].partition("=")[0], "paste.comment")
        return self._at > start

    def _word(self) -> list[Word]:
        """The word at this place; several, or none, where an unquoted variable is filled in."""
        word = WordUnderWay()
        while self._at < len(self._text) and self._read_piece(word):
            pass
        return word.finished()

    def _read_piece(self, word: WordUnderWay) -> bool:
        """Add the next piece to the word. False where the word ends."""
        text, mark = self._text, self._text[self._at]
        if match := PLAIN.match(text, self._at):
            word.text += match[0]
            self._at = match.end()
        elif match := PLACEHOLDER.match(text, self._at):
            word.mark(match[0])
            word.text += match[0]
            self._at = match.end()
        elif match := CONTINUED.match(text, self._at):
            if match["slip"] or mark != "\\" or text.startswith(("-", " ", "\t", "\n"), match.end()):
                return False
            self._at = match.end()
        elif mark.isspace() or mark in ";|&<>)" or (mark == "(" and not word.text):
            return False
        else:
            self._read_mark(word, mark)
        return True

    def _read_mark(self, word: WordUnderWay, mark: str) -> None:
        """Add what a shell reads in its own way: quotes, escapes, variables."""
        if mark == "\\" and not DRIVE.search(word.text[:2]):
            word.text += self._text[self._at + 1 : self._at + 2]
            word.quoted = True
            self._at += 2
        elif mark == "'" and not self._is_apostrophe():
            self._single(word)
        elif mark == '"':
            self._double(word)
        elif not self._expanded(word, quoted=False):
            if mark == "(":
                word.mark(mark)
            word.text += mark
            self._at += 1

    def _is_apostrophe(self) -> bool:
        """Whether it stands in prose, as in "don't": between letters, with no other one on the line."""
        around = self._text[max(self._at - 1, 0) : self._at + 2]
        if not re.fullmatch(r"[A-Za-z]'[A-Za-z]", around):
            return False
        closed, end = self._text.find("'", self._at + 1), self._text.find("\n", self._at + 1)
        return closed < 0 or 0 <= end < closed

    def _single(self, word: WordUnderWay) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise InvalidInput("paste.quotes", quote="'")
        word.text += self._text[self._at + 1 : end]
        word.quoted = True
        self._at = end + 1

    def _double(self, word: WordUnderWay) -> None:
        word.quoted = True
        self._at += 1
        while not self._text.startswith('"', self._at):
            if self._at >= len(self._text):
                raise InvalidInput("paste.quotes", quote='"')
            following = self._text[self._at + 1 : self._at + 2]
            if self._text[self._at] == "\\" and following and following in '\\"$`\n':
                word.text += following.strip("\n")
                self._at += 2
            elif not self._expanded(word, quoted=True):
                word.text += self._text[self._at]
                self._at += 1
        self._at += 1

    def _expanded(self, word: WordUnderWay, quoted: bool) -> bool:
        """Take what a shell would fill in: with its value where that is known, else as it stands, marked."""
        start = self._at
        if self._text.startswith("$(", start) or self._text[start] == "`":
            self._at = self._end_of_substitution(start)
        elif not quoted and self._text.startswith("$'", start):
            self._at += 1
        elif match := VARIABLE.match(self._text, start):
            self._at = match.end()
            value = self._value(word, match[match.lastgroup or 0])
            if value is not None:
                word.fill(value, quoted)
                return True
        else:
            return False
        piece = self._text[start : self._at]
        word.mark(piece)
        word.text += piece
        return True

    def _value(self, word: WordUnderWay, name: str) -> list[Word] | None:
        default = DEFAULT.fullmatch(name)
        name = default[1] if default else name.removesuffix("[@]").removesuffix("[*]")
        value = self._variables.get(name)
        if value is None and default:
            value = [Word(default[2].strip("'\""))]
        if value is None:
            return None
        text = " ".join(part.text for part in value)
        self._filled += len(text)
        if self._filled > MOST_FILLED:
            raise InvalidInput("paste.too_long", limit=MOST_FILLED)
        word.resolved.append((name, text))
        return value

    def _end_of_substitution(self, start: int) -> int:
        if self._text[start] == "`":
            end = self._text.find("`", start + 1)
            return end + 1 if end >= 0 else start + 1
        depth = 0 if not self._unclosed else -1
        for match in re.compile(r"[()\n]").finditer(self._text, start):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if depth <= 0:
                break
        else:
            self._unclosed = True
            return start + 2
        return match.end() if depth == 0 else start + 2


class WordUnderWay:
    """A word that is being read."""

    def __init__(self) -> None:
        self.text = ""
        self.quoted = False
        self.acted_on: str | None = None
        self.resolved: list[tuple[str, str]] = []
        self.before: list[Word] = []

    def mark(self, piece: str) -> None:
        self.acted_on = self.acted_on or piece[:60]

    def fill(self, value: Sequence[Word], quoted: bool) -> None:
        """Add a variable's value: unquoted text is split at its blanks, an array into its words."""
        parts = value if quoted or len(value) > 1 else [replace(value[0], text=t) for t in value[0].text.split()]
        self.quoted = self.quoted or quoted
        for number, part in enumerate(parts):
            if number:
                self.before.append(self._whole())
                self.text, self.acted_on = "", None
            self.text += part.text
            self.acted_on = self.acted_on or part.acted_on

    def finished(self) -> list[Word]:
        return [*self.before, self._whole()] if self.text or self.quoted else self.before

    def _whole(self) -> Word:
        return Word(self.text, self.acted_on, tuple(self.resolved))
