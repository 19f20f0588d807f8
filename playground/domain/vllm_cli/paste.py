"""Pasted text -> settings, with a note on each thing translated or left out.

In stages: the text as it was typed -> the kind of document -> commands -> vLLM's words -> options -> settings.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.settings import VARIABLES, EngineSettings

from . import documents, python_call, typed_text
from .collected import Collected
from .notes import LeftOut, Notes
from .old_names import OLD_NAMES
from .options import Option, is_option, split
from .shell import programs
from .shell.commands import Command, commands, readable_commands, unresolved
from .shell.containers import container_run
from .shell.programs import Start

# A longer text is no command line.
LONGEST = 100_000
# So many other commands are named, each; more are counted.
MOST_NAMED = 10
# A variable that is set, as in NAME=0, NAME: "0", ["NAME"] = "0", or Kubernetes' name and value.
ASSIGNED = r"""^[^#\n]*\b{name}\b["'\]]*\s*(?:[=:,]|\n\s*-?\s*value\s*:)\s*["']?(0|1|true|false)\b"""
# A line of vLLM's log.
LOGGED = re.compile(r"non-default args: (\{.*\})")
LOG = re.compile(
    r"""^(?:[\w.-]+[ ]*\|[ ]*)?(?:\([^()\n]*pid=\d+\)[ ]*)*
    (?:(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)(?::[ ]|[ ]\d\d-\d\d[ ])
      |Traceback[ ]\(most[ ]recent[ ]call[ ]last\))""",
    re.MULTILINE | re.VERBOSE,
)
PROGRAM_VALUE = re.compile(r"\$\{([^{}]+)\}")
# Of a text that may be all right, but starts nothing.
NOTHING = ("paste.no_engine_in_yaml", "paste.no_image")
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
            notes.leave(_engine(_options(block, Notes())), "paste.other_engine")
        except InvalidInput:
            others += bool(block.strip())
    if others:
        notes.leave(f"+{others}", "paste.other_blocks")


def _engine(options: Sequence[Option]) -> str:
    """An engine by its model."""
    return "vllm serve " + next((str(option.value) for option in options if option.name == "model"), "…")


def _options(block: str, notes: Notes) -> list[Option]:
    python = typed_text.without_python_prompts(block)
    if python_call.is_python(python):
        return _of_python(python, notes)
    words = python_call.listed_words(python, notes)
    if isinstance(words, str):
        return _of_program_text(words, notes)
    if words is not None:
        start = programs.contained(None, None, words)
        return _of_start(start, notes) if start else _of_shell(block, notes)
    if documents.looks_like_yaml(block) and not documents.is_dockerfile(block):
        return _of_yaml(block, notes)
    if documents.is_dockerfile(block) or documents.is_quadlet(block):
        return _of_document(block, notes)
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


def _of_program_text(text: str, notes: Notes) -> list[Option]:
    """A text for a shell that a program makes: what has no value in it is the program's."""
    try:
        options = _of_shell(text, notes)
    except InvalidInput as error:
        if error.message_id == "paste.shell" and (made := PROGRAM_VALUE.fullmatch(str(error.params["what"]))):
            raise unresolved(made[1]) from None
        raise
    return [
        replace(option, acted_on=PROGRAM_VALUE.sub(r"\1", option.acted_on or "") or None) for option in options
    ]


def _of_yaml(block: str, notes: Notes) -> list[Option]:
    """The document; or the shell's text, of which the first line may look like YAML."""
    attempt = Notes([*notes.translated], [*notes.left_out])
    try:
        options = _of_document(block, attempt)
    except InvalidInput as refusal:
        if refusal.message_id not in ("paste.not_yaml", "paste.no_engine_in_yaml"):
            raise
        try:
            return _of_shell(block, notes)
        except InvalidInput as error:
            raise (refusal if error.message_id == "paste.no_program" else error) from None
    notes.translated, notes.left_out = attempt.translated, attempt.left_out
    return options


def _of_document(block: str, notes: Notes) -> list[Option]:
    """What the engine of a Dockerfile, a Quadlet file or YAML gets; other engines are named."""
    if documents.is_dockerfile(block):
        start = documents.start_of_dockerfile(block, notes)
    elif documents.is_quadlet(block):
        start = documents.start_of_quadlet(block)
    else:
        return _of_parsed_yaml(block, notes)
    if start is None:
        raise InvalidInput("paste.no_image")
    return _of_start(start, notes)


def _of_parsed_yaml(block: str, notes: Notes) -> list[Option]:
    starts = [*documents.starts_of_yaml(block, notes)]
    if not starts:
        raise InvalidInput("paste.no_engine_in_yaml")
    first, *others = starts
    for other in others:
        try:
            name = _engine(other if isinstance(other, list) else _of_start(other, Notes()))
        except InvalidInput:
            name = "…"
        notes.leave(name, "paste.other_engine")
    return first if isinstance(first, list) else _of_start(first, notes)


def _of_shell(block: str, notes: Notes) -> list[Option]:
    every, refusal = readable_commands(typed_text.without_prompts(block, notes), notes)
    files = _files(every)
    starts = [(command, programs.start_of(command, notes)) for command in every]
    if len(every) == 1 and every[0].words and is_option(every[0].words[0].text):
        # Options alone.
        starts = [(every[0], Start(every[0].words))]
    first = next((start for _, start in starts if start is not None), None)
    if first is None:
        written = _of_files(files, notes)
        return _without_start(block, every, refusal, notes) if written is None else written
    for command, start in starts:
        if start not in (None, first):
            notes.leave(programs.named(command.words), "paste.other_engine")
    if refusal is not None:
        notes.leave("…", "paste.rest_unread", why=refusal.as_message())
    options = _of_start(first, notes)
    config = next((option for option in options if option.name == "config"), None)
    file = next((file for file in files if config and _writes(file[0], str(config.value))), None)
    writer = file[0] if file else None
    _name_others([command for command, start in starts if start is None and command is not writer], every, notes)
    if file is None:
        return options
    notes.leave(_with_redirections(file[0]), "paste.writes")
    # As vLLM does, which reads the file first.
    return [*_of_document(file[1], notes), *(option for option in options if option is not config)]


def _writes(command: Command, file: str) -> bool:
    """Whether the command writes the file: by its redirection, or as tee does."""
    return f">{file}" in command.aside or file in [word.text for word in command.words]


def _with_redirections(command: Command) -> str:
    return " ".join([programs.named(command.words), *command.aside])


def _files(every: Sequence[Command]) -> list[tuple[Command, str]]:
    """The documents that the commands write, or send to a program: here-documents that are no shell's text."""
    files: list[tuple[Command, str]] = []
    for command in every:
        texts = [body for body in command.bodies if _is_document(body)]
        command.bodies = [body for body in command.bodies if body not in texts]
        files += [(command, text) for text in texts]
    return files


def _is_document(text: str) -> bool:
    return documents.is_dockerfile(text) or documents.is_quadlet(text) or documents.looks_like_yaml(text)


def _of_files(files: Sequence[tuple[Command, str]], notes: Notes) -> list[Option] | None:
    """What the first document says that starts vLLM; None without a document. Raises InvalidInput if none does."""
    refusal: InvalidInput | None = None
    for command, text in files:
        attempt = Notes([*notes.translated], [*notes.left_out])
        try:
            options = _of_document(text, attempt)
        except InvalidInput as error:
            if error.message_id not in NOTHING:
                raise
            refusal = error
            continue
        notes.translated, notes.left_out = attempt.translated, attempt.left_out
        notes.leave(_with_redirections(command), "paste.writes")
        return options
    if refusal is not None:
        raise refusal
    return None


def _without_start(
    block: str, every: Sequence[Command], refusal: InvalidInput | None, notes: Notes
) -> list[Option]:
    """What a text says that holds no command for vLLM. Raises InvalidInput if that is nothing."""
    if (logged := _logged(block)) is not None:
        return logged
    if LOG.search(block):
        raise InvalidInput("paste.is_log")
    if refusal is not None:
        raise refusal
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
    # Most logs name the model twice.
    tag = logged.pop("model_tag", None)
    named = {"model": tag, **logged} if tag is not None else logged
    return [Option(name, value) for name, value in named.items() if isinstance(name, str)]


def _name_others(others: Sequence[Command], every: Sequence[Command], notes: Notes) -> None:
    """Name what else the text does, but for the variables that are used elsewhere in it."""
    used = _used(every)
    for command in others[:MOST_NAMED]:
        if command.assigned:
            names = [name for name in command.assigned if name not in used]
            if names:
                notes.leave(", ".join(names), "paste.environment")
        elif command.words and command.words[0].text not in KEYWORDS:
            notes.leave(programs.named(command.words), "paste.other_command")
    if len(others) > MOST_NAMED:
        notes.leave(f"+{len(others) - MOST_NAMED}", "paste.other_command")


def _used(every: Sequence[Command]) -> set[str]:
    """The variables whose values stand in the commands."""
    words = [word for command in every for value in (command.words, *command.assigned.values()) for word in value]
    return {name for word in words for name, _ in word.resolved}


def _begins(every: Sequence[Command]) -> str:
    return next((" ".join(word.text for word in command.words[:2]) for command in every if command.words), "#")


def _of_start(start: Start, notes: Notes) -> list[Option]:
    notes.left_out += [left for left in start.left_out if left not in notes.left_out]
    if start.assumed is not None:
        notes.say("paste.assumed_image", image=start.assumed)
    return list(split(start.words, notes, OLD_NAMES))
