"""Shell text -> commands and their words, as a shell would split them. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from playground.domain.errors import InvalidInput

from ..notes import Notes, shortened
from .words import PLACEHOLDER, VARIABLE, Word, WordReader, WordUnderWay

OPENS = ("if", "for", "while", "until", "case", "select")
CLOSES = ("fi", "done", "esac")
TESTS = ("[", "[[", "test")
SETS = ("export", "declare", "local", "readonly", "set")
ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=")
# PowerShell's.
SET = re.compile(r"\$(?:env:)?([A-Za-z_]\w*)[ \t]*(\+?)=[ \t]*", re.IGNORECASE)
BREAKS = re.compile(r"&&|\|\||;;|\|&|[;|\n]|&(?![>&])")
REDIRECTED = re.compile(r"(?:\d+|&)?(?:>>|>\||>&|<<<|<&|<>|>|<)[ \t]*")
HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"]?)(\w+)\2")


@dataclass
class Command:
    """`aside`: its redirections, and an & at its end. `bodies`: texts of its here-documents."""

    words: list[Word] = field(default_factory=list)
    assigned: dict[str, list[Word]] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    ends_line: bool = False


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


class _Reader(WordReader):
    def __init__(self, text: str, notes: Notes, variables: Mapping[str, Sequence[Word]]) -> None:
        super().__init__(text, notes, variables)
        self._heredocs: list[tuple[Command, str, bool]] = []
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
            word = WordUnderWay()
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
