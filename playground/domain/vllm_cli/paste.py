"""Pasted text -> settings, with a note on each thing translated or left out.

In stages: the text as it was typed -> the kind of document -> commands -> vLLM's words -> options -> settings.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.settings import EngineSettings

from . import documents, programs, python_call, typed_text
from .collected import Collected
from .containers import container_run
from .notes import LeftOut, Notes
from .old_names import OLD_NAMES
from .options import Option, is_option, split
from .programs import Start
from .shell import Command, commands, readable_commands

# A longer text is no command line.
LONGEST = 100_000
# So many other commands are named, each; more are counted.
MOST_NAMED = 10
# A line of vLLM's log.
LOGGED = re.compile(r"non-default args: (\{.*\})")
# Of a shell's own language.
KEYWORDS = ("then", "else", "fi", "do", "done", "{", "}", "esac")
# A root's prompt looks like a comment.
COMMENTED = re.compile(r"^[ \t]*#[ \t]+(?=(?:sudo |docker |podman |python|vllm ))", re.MULTILINE)


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
        attempt = Notes([*notes.translated], [*notes.left_out])
        try:
            options = _options(block, attempt)
        except InvalidInput as error:
            if error.message_id != "paste.no_program":
                raise
            refusal = refusal or error
            continue
        notes = attempt
        others = sum(1 for later in blocks[number + 1 :] if later.strip())
        if others:
            notes.leave(f"+{others}", "paste.other_blocks")
        break
    if options is None:
        raise refusal or InvalidInput("paste.empty")
    collected = Collected(notes)
    collected.take(options)
    settings = collected.settings()
    return PastedSettings(settings, tuple(notes.translated), tuple(notes.left_out))


def _options(block: str, notes: Notes) -> list[Option]:
    python = typed_text.without_python_prompts(block)
    if python_call.is_python(python):
        return _of_python(python, notes)
    words = python_call.listed_words(python, notes)
    if isinstance(words, str):
        return _of_shell(words, notes)
    if words is not None:
        start = programs.contained(None, None, words)
        return _of_start(start, notes) if start else _of_shell(block, notes)
    if documents.is_dockerfile(block):
        start = documents.start_of_dockerfile(block, notes)
        if start is None:
            raise InvalidInput("paste.no_image")
        return _of_start(start, notes)
    if documents.looks_like_yaml(block):
        return _of_yaml(block, notes)
    return _of_shell(block, notes)


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
            return _of_shell(block, notes)
        raise refusal from None


def _of_yaml(block: str, notes: Notes) -> list[Option]:
    shell_notes = Notes([*notes.translated], [*notes.left_out])
    try:
        starts = [*documents.starts_of_yaml(block, notes)]
    except InvalidInput as error:
        starts, refusal = [], error
    else:
        refusal = InvalidInput("paste.no_engine_in_yaml")
    if not starts:
        try:
            options = _of_shell(block, shell_notes)
        except InvalidInput as error:
            raise (refusal if error.message_id == "paste.no_program" else error) from None
        notes.translated, notes.left_out = shell_notes.translated, shell_notes.left_out
        return options
    first = starts[0]
    if len(starts) > 1:
        notes.leave(f"+{len(starts) - 1}", "paste.other_engines")
    return first if isinstance(first, list) else _of_start(first, notes)


def _of_shell(block: str, notes: Notes) -> list[Option]:
    every, refusal = readable_commands(typed_text.without_prompts(block, notes), notes)
    starts = [(command, programs.start_of(command, notes)) for command in every]
    if len(every) == 1 and every[0].words and is_option(every[0].words[0].text):
        # Options alone.
        starts = [(every[0], Start(every[0].words))]
    first = next((start for _, start in starts if start is not None), None)
    if first is None:
        return _without_start(block, every, refusal, notes)
    for command, start in starts:
        if start not in (None, first):
            notes.leave(programs.named(command.words), "paste.other_engine")
    if refusal is not None:
        notes.leave("…", "paste.rest_unread", why=refusal.as_message())
    _name_others([command for command, start in starts if start is None], first, notes)
    return _of_start(first, notes)


def _without_start(
    block: str, every: Sequence[Command], refusal: InvalidInput | None, notes: Notes
) -> list[Option]:
    """What a text says that holds no command for vLLM. Raises InvalidInput if that is nothing."""
    if refusal is not None:
        raise refusal
    if (logged := _logged(block)) is not None:
        return logged
    if COMMENTED.search(block):
        notes.left_out = [left for left in notes.left_out if left.why.message_id != "paste.comment"]
        notes.leave("#", "paste.prompt")
        return _of_shell(COMMENTED.sub("", block), notes)
    if any(container_run([word.text for word in command.words]) for command in every):
        raise InvalidInput("paste.no_image")
    raise InvalidInput("paste.no_program", word=_begins(every)[:60])


def _logged(block: str) -> list[Option] | None:
    """The options in vLLM's own log."""
    if (match := LOGGED.search(block)) is None:
        return None
    try:
        logged = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    # The log names the model twice.
    return [Option(name, value) for name, value in logged.items() if isinstance(name, str) and name != "model_tag"]


def _name_others(others: Sequence[Command], first: Start, notes: Notes) -> None:
    """Name what else the text does; variables that the engine's words contain are named with their values."""
    used = {name for word in first.words for name, _ in word.resolved}
    for command in others[:MOST_NAMED]:
        if command.assigned:
            names = [name for name in command.assigned if name not in used]
            if names:
                notes.leave(", ".join(names), "paste.environment")
        elif command.words and command.words[0].text not in KEYWORDS:
            notes.leave(programs.named(command.words), "paste.other_command")
    if len(others) > MOST_NAMED:
        notes.leave(f"+{len(others) - MOST_NAMED}", "paste.other_command")


def _begins(every: Sequence[Command]) -> str:
    return next((" ".join(word.text for word in command.words[:2]) for command in every if command.words), "#")


def _of_start(start: Start, notes: Notes) -> list[Option]:
    notes.left_out += [left for left in start.left_out if left not in notes.left_out]
    if start.assumed is not None:
        notes.say("paste.assumed_image", image=start.assumed)
    return list(split(start.words, notes, OLD_NAMES))
