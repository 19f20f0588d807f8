"""Pasted text -> settings, with a note on each thing translated or left out.

In stages: the text as it was typed -> the kind of document -> commands -> vLLM's words -> options -> settings.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.settings import VARIABLES, EngineSettings

from . import documents, python_call, typed_text
from .collected import Collected
from .from_shell import engine, of_document, of_shell, of_start
from .notes import LeftOut, Notes
from .options import Option
from .shell import programs
from .shell.commands import commands
from .shell.words import unresolved

# A longer text is no command line.
LONGEST = 100_000
# A variable that is set, as in NAME=0, NAME: "0", ["NAME"] = "0", or Kubernetes' name and value.
ASSIGNED = r"""^[^#\n]*\b{name}\b["'\]]*\s*(?:[=:,]|\n\s*-?\s*value\s*:)\s*["']?(0|1|true|false)\b"""
PROGRAM_VALUE = re.compile(r"\$\{([^{}]+)\}")


@dataclass(frozen=True)
class PastedSettings:
    """The settings that were understood; a sentence on each translation; what was left out, and why."""

    settings: EngineSettings
    translated: tuple[Message, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def notes(self) -> list[Message]:
        """A sentence on everything that was translated or left out."""
        left_out = [Message("paste.left_out", {"what": left.what, "why": left.why}) for left in self.left_out]
        return [*self.translated, *left_out]


def read(text: str) -> PastedSettings:
    """A command line, a script, a Compose or Kubernetes file, a vLLM --config file, or Python that starts vLLM.

    The first engine counts; others are named. Raises InvalidInput for what can't be understood or used. The text
    is never executed.
    """
    if not text.strip():
        raise InvalidInput("paste.empty")
    if len(text) > LONGEST:
        raise InvalidInput("paste.too_long", limit=LONGEST)
    notes = Notes()
    options: Sequence[Option] | None = None
    refusal: InvalidInput | None = None
    blocks = typed_text.blocks(typed_text.cleaned(text, notes), notes)
    for number, block in enumerate(blocks):
        if not block.strip():
            continue
        attempt = notes.copy()
        try:
            options = _options(block, attempt)
        except InvalidInput as error:
            if error.message_id != "paste.no_program":
                raise
            refusal = refusal or error
            continue
        notes = attempt
        _name_blocks(blocks[number + 1 :], notes)
        break
    if options is None:
        raise refusal or InvalidInput("paste.empty")
    collected = Collected(notes)
    collected.take([*options, *_variables(text, notes)])
    settings = collected.settings()
    return PastedSettings(settings, tuple(notes.translated), tuple(notes.left_out))


def _variables(text: str, notes: Notes) -> list[Option]:
    """The knobs that vLLM reads from its environment, wherever the text sets them."""
    read: list[Option] = []
    for knob, name in VARIABLES.items():
        if match := re.search(ASSIGNED.format(name=name), text, re.MULTILINE | re.IGNORECASE):
            read.append(Option(knob, match[1].lower() in ("1", "true")))
            for place, left in enumerate(notes.left_out):
                if left.why.message_id == "paste.environment":
                    others = [what for what in left.what.split(", ") if what != name]
                    notes.left_out[place] = LeftOut(", ".join(others), left.why)
    notes.left_out = [left for left in notes.left_out if left.what]
    return read


def _name_blocks(blocks: Sequence[str], notes: Notes) -> None:
    """Name what the blocks after the first engine start, and count those that start nothing."""
    others = 0
    for block in blocks:
        try:
            notes.leave(engine(_options(block, Notes())), "paste.other_engine")
        except InvalidInput:
            others += bool(block.strip())
    if others:
        notes.leave(f"+{others}", "paste.other_blocks")


def _options(block: str, notes: Notes) -> list[Option]:
    python = typed_text.without_python_prompts(block)
    if python_call.is_python(python):
        return _of_python(python, notes)
    words = python_call.listed_words(python, notes)
    if isinstance(words, str):
        return _of_program_text(words, notes)
    if words is not None:
        start = programs.contained(None, None, words)
        return of_start(start, notes) if start else of_shell(block, notes)
    if documents.looks_like_yaml(block) and not documents.is_dockerfile(block):
        return _of_yaml(block, notes)
    if documents.is_dockerfile(block) or documents.is_quadlet(block):
        return of_document(block, notes)
    return of_shell(block, notes)


def _of_python(block: str, notes: Notes) -> list[Option]:
    """The call, also within a command, as in python -c '...'."""
    try:
        return python_call.options(block, notes)
    except InvalidInput as refusal:
        with contextlib.suppress(InvalidInput):
            for command in commands(typed_text.without_prompts(block, Notes()), Notes()):
                program = command.words[0].text if command.words else ""
                for text in (*(word.text for word in command.words), *command.bodies):
                    if python_call.is_python(text) and "python" in program:
                        notes.leave(programs.named(command.words), "paste.wrapper")
                        return python_call.options(text, notes)
        with contextlib.suppress(InvalidInput):
            # A shell's text may only mention the call.
            return of_shell(block, notes)
        raise refusal from None


def _of_program_text(text: str, notes: Notes) -> list[Option]:
    """A text for a shell that a program makes: what has no value in it is the program's."""
    try:
        options = of_shell(text, notes)
    except InvalidInput as error:
        if error.message_id == "paste.shell" and (made := PROGRAM_VALUE.fullmatch(str(error.params["what"]))):
            raise unresolved(made[1]) from None
        raise
    return [
        replace(option, acted_on=PROGRAM_VALUE.sub(r"\1", option.acted_on or "") or None) for option in options
    ]


def _of_yaml(block: str, notes: Notes) -> list[Option]:
    """The document; or the shell's text, of which the first line may look like YAML."""
    attempt = notes.copy()
    try:
        options = of_document(block, attempt)
    except InvalidInput as refusal:
        if refusal.message_id not in ("paste.not_yaml", "paste.no_engine_in_yaml"):
            raise
        try:
            return of_shell(block, notes)
        except InvalidInput as error:
            raise (refusal if error.message_id == "paste.no_program" else error) from None
    notes.become(attempt)
    return options
