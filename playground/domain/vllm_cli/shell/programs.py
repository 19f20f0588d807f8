"""Commands -> the words that vLLM itself gets: what starts it, wraps it or contains it is named and left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from playground.domain.message import Message

from .. import option_table
from ..notes import LeftOut, Notes, shortened
from .commands import Command, commands
from .containers import container_run
from .words import Word

VLLM = re.compile(r"(?:\S*[/\\])?vllm(?:@\S+|\.exe)?|(?:\$\(|`)(?:which|command -v) vllm[)`]")
PYTHON = re.compile(r"(?:\S*[/\\])?python[\d.]*w?(?:\.exe)?")
SERVER = re.compile(r"\S*\bapi_server(?:\.py)?")
# Options of python that take a value.
PYTHON_VALUES = ("-W", "-X")
# These only name a program.
TALK = ("echo", "printf", "grep", "egrep", "pkill", "pgrep", "which", "type", "man", "alias", "watch")
# How deep a command may stand in another's text, as in bash -c.
DEEPEST = 4
MENTIONS = re.compile(r"\bvllm\s+serve\b|-m\s+vllm\b|vllm[-\w]*[:\s]|api_server")


@dataclass
class Start:
    """A command that starts vLLM. `words`: those after it, for vLLM. `assumed`: an image that may be vLLM's."""

    words: list[Word]
    left_out: list[LeftOut] = field(default_factory=list)
    assumed: str | None = None

    def leave(self, what: str, message_id: str, **params: object) -> None:
        if what.strip():
            self.left_out.append(LeftOut(what, Message(message_id, params)))


def start_of(command: Command, notes: Notes, depth: int = 0) -> Start | None:
    """Where this command starts vLLM, and what of it is not for vLLM; None if it does not."""
    texts = [word.text for word in command.words]
    if texts and texts[0] in TALK:
        return None
    start = _container(command.words) or _entry(command.words)
    if start is None and depth < DEEPEST:
        start = _nested(command, notes, depth)
    if start is None or any(word.text.partition("=")[0] in ("--help", "-h") for word in start.words):
        return None
    if command.assigned:
        start.leave(", ".join(command.assigned), "paste.environment")
    start.leave(" ".join(command.aside), "paste.redirection")
    return start


def _entry(words: Sequence[Word]) -> Start | None:
    """`vllm serve`, or python with vLLM's module or script, wherever it stands in the command."""
    texts = [word.text for word in words]
    for at, text in enumerate(texts):
        after = None
        if VLLM.fullmatch(text) and texts[at + 1 : at + 2] == ["serve"]:
            after = at + 2
        elif PYTHON.fullmatch(text):
            after = _after_python(texts, at + 1)
        elif text == "-m":
            # Of a launcher such as torchrun.
            after = _after_python(texts, at)
        elif SERVER.fullmatch(text) and text.endswith(".py"):
            after = at + 1
        if after is not None:
            start = Start(list(words[after:]))
            _name_wrapper(start, words[:at])
            return start
    return None


def _after_python(texts: Sequence[str], at: int) -> int | None:
    while at < len(texts) and texts[at].startswith("-") and texts[at] != "-m":
        at += 2 if texts[at] in PYTHON_VALUES else 1
    module = texts[at + 1] if texts[at : at + 1] == ["-m"] and len(texts) > at + 1 else None
    if module is None:
        return at + 1 if at < len(texts) and SERVER.fullmatch(texts[at]) else None
    if not re.fullmatch(r"vllm|vllm\.(entrypoints|scripts)\S*", module):
        return None
    if texts[at + 2 : at + 3] == ["serve"]:
        return at + 3
    return at + 2 if "api_server" in module else None


def _name_wrapper(start: Start, words: Sequence[Word]) -> None:
    """Name what stands before the program; of assignments the names alone."""
    names = [word.text.partition("=")[0] for word in words if re.match(r"[A-Za-z_]\w*=", word.text)]
    start.leave(", ".join(names), "paste.environment")
    wrapper = [word.text.partition("=")[0] for word in words if not re.match(r"[A-Za-z_]\w*=", word.text)]
    start.leave(" ".join(wrapper), "paste.wrapper")


def _container(words: Sequence[Word]) -> Start | None:
    """The command inside `docker run ...` and its like."""
    run = container_run([word.text for word in words])
    if run is None:
        return None
    start = contained(run.image, run.entrypoint, words[run.after :])
    if start is not None:
        _name_wrapper(start, words[: run.at])
        start.leave(" ".join([run.name, "run", *dict.fromkeys(run.options)]), "paste.container", name=run.name)
        start.leave(", ".join(filter(None, dict.fromkeys(run.variables))), "paste.environment")
    return start


def contained(
    image: str | None,
    entrypoint: str | Sequence[Word] | None,
    arguments: Sequence[Word],
    variables: Mapping[str, Sequence[Word]] | None = None,
) -> Start | None:
    """The words for vLLM of a container: its entry point and arguments, if these start vLLM, or else the arguments
    of an image whose entry point is vLLM's server. None where neither is so."""
    if isinstance(entrypoint, str):
        entrypoint = [Word(entrypoint)] if entrypoint else []
    whole = Command(words=[*(entrypoint or ()), *arguments])
    notes = Notes()
    start = _entry(whole.words) or _nested(whole, notes, 1, variables)
    if start is not None:
        return start
    texts = [word.text for word in arguments]
    if entrypoint or (texts and re.search(r"(?:^|/)(?:ba|z|da)?sh$", texts[0])):
        return None
    if not texts:
        # The image alone runs a shell, or has all that it needs in itself.
        return None
    if texts[:1] == ["serve"]:
        arguments = arguments[1:]
    if image is None or re.search("vllm", image, re.IGNORECASE):
        return Start([*arguments])
    options = [text.partition("=")[0].lstrip("-").replace("_", "-") for text in texts if text.startswith("--")]
    if options and all(option.removeprefix("no-").partition(".")[0] in option_table.EVERY for option in options):
        return Start([*arguments], assumed=image)
    return None


def _nested(
    command: Command, notes: Notes, depth: int, variables: Mapping[str, Sequence[Word]] | None = None
) -> Start | None:
    """The command in a word or a here-document of another, as in bash -c '...'."""
    words = [word for word in command.words if re.search(r"\s", word.text)]
    for word in [*words, *map(Word, command.bodies)]:
        if not MENTIONS.search(word.text):
            continue
        for inner in commands(word.text, notes, variables):
            start = start_of(inner, notes, depth + 1)
            if start is not None:
                for name, value in word.resolved:
                    notes.say("paste.resolved", name=name, value=shortened(value))
                outer = [other for other in command.words if other.text != word.text]
                _name_wrapper(start, outer)
                return start
    return None


def named(words: Sequence[Word]) -> str:
    """A command by its first words, without options and what may be a secret."""
    texts = [word.text for word in words]
    name = " ".join(texts[:1])
    if re.fullmatch(r"[a-z][a-z-]{0,15}", " ".join(texts[1:2])):
        name += f" {texts[1]}"
        if texts[:2] == ["vllm", "serve"] and len(texts) > 2 and not texts[2].startswith("-"):
            name += f" {texts[2]}"
    return name + (" …" if len(texts) > len(name.split()) else "")
