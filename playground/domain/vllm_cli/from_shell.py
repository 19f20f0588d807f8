"""Shell text and documents -> the options that vLLM gets. In one file, for a shell's text may write a document."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from playground.domain.errors import InvalidInput

from . import documents, typed_text
from .notes import Notes
from .old_names import OLD_NAMES
from .options import Option, is_option, split
from .shell import programs
from .shell.commands import Command, readable_commands
from .shell.containers import container_run
from .shell.programs import Start

# So many other commands are named, each; more are counted.
MOST_NAMED = 10
# A line of vLLM's log.
LOGGED = re.compile(r"non-default args: (\{.*\})")
LOG = re.compile(
    r"""^(?:[\w.-]+[ ]*\|[ ]*)?(?:\([^()\n]*pid=\d+\)[ ]*)*
    (?:(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)(?::[ ]|[ ]\d\d-\d\d[ ])
      |Traceback[ ]\(most[ ]recent[ ]call[ ]last\))""",
    re.MULTILINE | re.VERBOSE,
)
# Of a text that may be all right, but starts nothing.
NOTHING = ("paste.no_engine_in_yaml", "paste.no_image")
# Of a shell's own language.
KEYWORDS = ("then", "else", "fi", "do", "done", "{", "}", "esac")
# A root's prompt looks like a comment.
COMMENTED = re.compile(r"^[ \t]*#[ \t]+(?=(?:sudo |docker |podman |python|vllm ))", re.MULTILINE)


def engine(options: Sequence[Option]) -> str:
    """An engine by its model."""
    return "vllm serve " + next((str(option.value) for option in options if option.name == "model"), "…")


def of_document(block: str, notes: Notes) -> list[Option]:
    """What the engine of a Dockerfile, a Quadlet file or YAML gets; other engines are named."""
    if documents.is_dockerfile(block):
        start = documents.start_of_dockerfile(block, notes)
    elif documents.is_quadlet(block):
        start = documents.start_of_quadlet(block)
    else:
        return _of_parsed_yaml(block, notes)
    if start is None:
        raise InvalidInput("paste.no_image")
    return of_start(start, notes)


def _of_parsed_yaml(block: str, notes: Notes) -> list[Option]:
    starts = [*documents.starts_of_yaml(block, notes)]
    if not starts:
        raise InvalidInput("paste.no_engine_in_yaml")
    first, *others = starts
    for other in others:
        try:
            name = engine(other if isinstance(other, list) else of_start(other, Notes()))
        except InvalidInput:
            name = "…"
        notes.leave(name, "paste.other_engine")
    return first if isinstance(first, list) else of_start(first, notes)


def of_shell(block: str, notes: Notes) -> list[Option]:
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
    options = of_start(first, notes)
    config = next((option for option in options if option.name == "config"), None)
    file = next((file for file in files if config and _writes(file[0], str(config.value))), None)
    writer = file[0] if file else None
    _name_others([command for command, start in starts if start is None and command is not writer], every, notes)
    if file is None:
        return options
    notes.leave(_with_redirections(file[0]), "paste.writes")
    # As vLLM does, which reads the file first.
    return [*of_document(file[1], notes), *(option for option in options if option is not config)]


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
        attempt = notes.copy()
        try:
            options = of_document(text, attempt)
        except InvalidInput as error:
            if error.message_id not in NOTHING:
                raise
            refusal = error
            continue
        notes.become(attempt)
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
        return of_shell(COMMENTED.sub("", block), notes)
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


def of_start(start: Start, notes: Notes) -> list[Option]:
    notes.left_out += [left for left in start.left_out if left not in notes.left_out]
    if start.assumed is not None:
        notes.say("paste.assumed_image", image=start.assumed)
    return list(split(start.words, notes, OLD_NAMES))
