"""Shell text -> commands and their words, as a shell would split them. Nothing is run.

What only a shell could resolve is marked at its word: whoever needs that word refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from playground.domain.errors import InvalidInput

from ..notes import Notes, shortened

MOST_FILLED = 100_000
OPENS = ("if", "for", "while", "until", "case", "select")
CLOSES = ("fi", "done", "esac")
TESTS = ("[", "[[", "test")
SETS = ("export", "declare", "local", "readonly", "set")
ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=")
# PowerShell's.
SET = re.compile(r"\$(?:env:)?([A-Za-z_]\w*)[ \t]*(\+?)=[ \t]*", re.IGNORECASE)
DEFAULT = re.compile(r"(\w+):?[-=]([^{}$`]*)")
VARIABLE = re.compile(r"\$(?:(?P<bare>[A-Za-z_]\w*|[0-9@*#?!-])|\{(?P<braced>[^{}\n]*)\})|%(?P<dos>[A-Za-z_]\w*)%")
# A backslash, Windows' caret or PowerShell's backtick at the end of a line; blanks and comments after it are
# slips. A shell shows > before the next line.
CONTINUED = re.compile(r"[\\^`](?P<slip>[ \t]*(?:(?<=[ \t])#[^\n]*)?)(?:\n|\Z)(?:[ \t]*>[ \t])?")
BREAKS = re.compile(r"&&|\|\||;;|\|&|[;|\n]|&(?![>&])")
REDIRECTED = re.compile(r"(?:\d+|&)?(?:>>|>\||>&|<<<|<&|<>|>|<)[ \t]*")
HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"]?)(\w+)\2")
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


@dataclass
class Command:
    """`aside`: its redirections, and an & at its end. `bodies`: texts of its here-documents."""

    words: list[Word] = field(default_factory=list)
    assigned: dict[str, list[Word]] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    ends_line: bool = False


def unresolved(piece: str) -> InvalidInput:
    """The refusal of a piece of text without a value: a document's <placeholder>, a shell's, or a program's."""
    if PLACEHOLDER.fullmatch(piece):
        return InvalidInput("paste.placeholder", what=piece)
    return InvalidInput("paste.shell" if re.match(r"[$`%()]", piece) else "paste.program_value", what=piece)


def plain(words: Sequence[str]) -> list[Word]:
    return [Word(word) for word in words]


def commands(text: str, notes: Notes, variables: Mapping[str, Sequence[Word]] | None = None) -> list[Command]:
    """The commands in order. Variables that were set before, to literal values, are filled in.

    Raises InvalidInput for quotes that do not close.
    """
    every, refusal = readable_commands(text, notes, variables)
    if refusal is not None:
        raise refusal
    return every


def readable_commands(
    text: str, notes: Notes, variables: Mapping[str, Sequence[Word]] | None = None
) -> tuple[list[Command], InvalidInput | None]:
    """The commands up to the first that can't be read, and why it can't. Where that one continues the one before,
    there are none."""
    reader, read, refusal = _Reader(text, notes, variables or {}), list[Command](), None
    try:
        read += (command for command in reader.commands() if command != Command())
    except InvalidInput as error:
        refusal = error
    if refusal is not None and reader.begins_with_option():
        return [], refusal
    return _joined(read, notes), refusal


def _joined(read: Sequence[Command], notes: Notes) -> list[Command]:
    joined: list[Command] = []
    for command in read:
        before = joined[-1] if joined else None
        first = command.words[0].text if command.words else ""
        if before and before.ends_line and before.words and re.match(r"--?[A-Za-z]", first):
            # No program is called that: the line continues the one before.
            notes.say("paste.continued", word=first[:60])
            before.words += command.words
            before.aside += command.aside
            before.bodies += command.bodies
            before.ends_line = command.ends_line
        else:
            joined.append(command)
    return joined


class _Reader:
    def __init__(self, text: str, notes: Notes, variables: Mapping[str, Sequence[Word]]) -> None:
        self._text = text
        self._notes = notes
        self._at = 0
        self._variables: dict[str, list[Word]] = {name: [*value] for name, value in variables.items()}
        self._heredocs: list[tuple[Command, str, bool]] = []
        # Characters that variables added: each may hold the one before it twice.
        self._filled = 0
        self._unclosed = False
        self._command_at = 0
        # How many conditions and loops are open, and whether the command before decides on this one.
        self._depth = 0
        self._depends = False

    def begins_with_option(self) -> bool:
        """Whether the command that is being read has no program."""
        return re.compile(r"\s*--?[A-Za-z]").match(self._text, self._command_at) is not None

    def commands(self) -> Iterator[Command]:
        command = Command()
        while self._at < len(self._text):
            start = self._at
            if self._skipped_blanks():
                continue
            if match := BREAKS.match(self._text, self._at):
                self._at = match.end()
                if match[0] == "&":
                    command.aside.append("&")
                command.ends_line = match[0] == "\n"
                self._remember(command)
                tests = bool(command.words) and command.words[0].text in TESTS
                self._depends = match[0] == "||" or (match[0] == "&&" and tests)
                yield command
                if match[0] == "\n":
                    self._read_bodies()
                command = Command()
                self._command_at = self._at
            elif not self._redirected(command):
                self._read_words(command)
                self._at = max(self._at, start + 1)
        command.ends_line = True
        self._remember(command)
        yield command

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

    def _remember(self, command: Command) -> None:
        """Variables of a command that only sets them hold for those that follow: without a value where it depends
        on a condition."""
        first = command.words[0].text if command.words else ""
        self._depth += (first in OPENS) - (first in CLOSES)
        if first and first not in SETS:
            return
        for name, value in command.assigned.items():
            depends = self._depth > 0 or self._depends
            self._variables[name] = [Word(f"${name}", f"${name}")] if depends else value

    def _redirected(self, command: Command) -> bool:
        if match := HEREDOC.match(self._text, self._at):
            self._at = match.end()
            self._heredocs.append((command, match[3], bool(match[2])))
            return True
        if PLACEHOLDER.match(self._text, self._at):
            return False
        if match := REDIRECTED.match(self._text, self._at):
            self._at = match.end()
            at_end = self._at == len(self._text) or self._text[self._at] == "\n"
            target = [] if at_end else self._word()
            command.aside.append(match[0].strip() + " ".join(word.text for word in target))
            return True
        return False

    def _read_bodies(self) -> None:
        for command, mark, quoted in self._heredocs:
            end = re.compile(rf"^[ \t]*{mark}[ \t]*$", re.MULTILINE).search(self._text, self._at)
            body = self._text[self._at : end.start() if end else len(self._text)]
            command.bodies.append(body if quoted else self._filled_in(body))
            self._at = end.end() if end else len(self._text)
        self._heredocs = []

    def _filled_in(self, body: str) -> str:
        """The body with the variables that are known. The mark's quotes would keep a shell from filling it in."""

        def value(match: re.Match[str]) -> str:
            word = _Word()
            filled = None if match["kept"] else self._value(word, match[match.lastgroup or 0])
            if filled is None or any(part.acted_on for part in filled):
                return match["kept"] or match[0]
            for name, text in word.resolved:
                self._notes.say("paste.resolved", name=name, value=shortened(text))
            return " ".join(part.text for part in filled)

        return re.sub(rf"\\(?P<kept>\$)|{VARIABLE.pattern}", value, body)

    def _read_words(self, command: Command) -> None:
        if self._text[self._at] in "()":
            # A subshell around commands. Elsewhere it is a word that only a shell understands.
            mark = self._text[self._at]
            self._at += 1
            if command.words and mark == "(":
                command.words.append(Word(mark, mark))
            return
        match = ASSIGNED.match(self._text, self._at) or SET.match(self._text, self._at)
        if match is None or not all(word.text in (*SETS, "env", "sudo") for word in command.words):
            command.words += self._word()
            return
        name, more = match.groups()
        self._at = match.end()
        before = [*self._variables.get(name, ())] if more else []
        if self._text.startswith("(", self._at):
            self._at += 1
            command.assigned[name] = [*before, *self._listed()]
        else:
            value = self._word() or [Word("")]
            text = " ".join(word.text for word in value)
            command.assigned[name] = [replace(value[0], text="".join(word.text for word in before) + text)]

    def _listed(self) -> list[Word]:
        """The words of an array, up to its closing parenthesis."""
        words: list[Word] = []
        while self._at < len(self._text):
            if self._text[self._at] == ")":
                self._at += 1
                break
            if self._text[self._at] in "\n(" or BREAKS.match(self._text, self._at):
                self._at += 1
            elif not self._skipped_blanks():
                start = self._at
                words += self._word()
                self._at = max(self._at, start + 1)
        return words

    def _word(self) -> list[Word]:
        """The word at this place; several, or none, where an unquoted variable is filled in."""
        word = _Word()
        while self._at < len(self._text) and self._read_piece(word):
            pass
        return word.finished()

    def _read_piece(self, word: _Word) -> bool:
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

    def _read_mark(self, word: _Word, mark: str) -> None:
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

    def _single(self, word: _Word) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise InvalidInput("paste.quotes", quote="'")
        word.text += self._text[self._at + 1 : end]
        word.quoted = True
        self._at = end + 1

    def _double(self, word: _Word) -> None:
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

    def _expanded(self, word: _Word, quoted: bool) -> bool:
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

    def _value(self, word: _Word, name: str) -> list[Word] | None:
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


class _Word:
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
