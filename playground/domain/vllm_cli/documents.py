"""Documents that hold vLLM's words: YAML of Compose, Kubernetes or --config, JSON, a Dockerfile, Quadlet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from playground.domain.errors import InvalidInput

from . import option_table
from .notes import Notes
from .options import Option, of_pair
from .shell.commands import commands
from .shell.programs import Start, contained
from .shell.words import Word

KEY = re.compile(r"""(?:- +)*["']?[\w./-]+["']?[ \t]*:(?:[ \t]|$)""")
FLOW = re.compile(r"""[\[{][ \t]*(?:["'{\[]|[\w-]+:[ \t]|$)""")
ITEM = re.compile(r"-(?: |$)")
INSTRUCTION = re.compile(r"^(FROM|ENTRYPOINT|CMD|ENV|ARG|RUN|WORKDIR|EXPOSE|COPY|LABEL|USER)\s", re.MULTILINE)
EXEC = ("ENTRYPOINT", "CMD")
# Keys whose text, or list of lines, is for a shell.
SCRIPTS = ("run", "script", "commands")
ENVIRONMENTS = ("environment", "env", "envs", "variables")
# A document that repeats parts by reference may be far larger than its text.
MOST_NODES = 20_000
# PyYAML takes long to find that brackets are nested too deeply.
MOST_OPENED = 3_000


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Every scalar is a text, as Compose and Kubernetes want their words."""


_Loader.yaml_implicit_resolvers = {
    mark: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":merge", ":null"))]
    for mark, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def looks_like_yaml(text: str) -> bool:
    """Whether its first line is a key, an item of a list, or the beginning of a document."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and not line.startswith(("#", "%YAML"))), "")
    return first == "---" or any(pattern.match(first) for pattern in (KEY, ITEM, FLOW))


def starts_of_yaml(text: str, notes: Notes) -> Iterator[Start | list[Option]]:
    """What starts vLLM, in order: containers, or the options of a --config file. Raises InvalidInput for what is
    no YAML, with the line."""
    for number, document in enumerate(_loaded(text, _Loader)):
        if isinstance(document, list) and all(isinstance(word, str) for word in document):
            start = contained(None, None, _words(document, {}))
            yield from [start] if start else []
            continue
        containers = [*_containers(document)]
        for container in containers:
            if (start := _of_container(container)) is not None:
                yield start
        is_config = isinstance(document, dict) and any(_option_name(key) in option_table.EVERY for key in document)
        if not containers and is_config:
            yield [*_config_options(_loaded(text, yaml.SafeLoader)[number], notes)]


def _loaded(text: str, loader: type[yaml.SafeLoader]) -> list[Any]:
    if text.count("[") + text.count("{") > MOST_OPENED:
        raise InvalidInput("paste.not_yaml", line=1)
    try:
        documents = list(yaml.load_all(text, loader))
        for document in documents:
            _count(document)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidInput("paste.not_yaml", line=line) from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        raise InvalidInput("paste.not_yaml", line=1) from None
    return documents


def _count(document: Any) -> None:
    """Raises ValueError for a document of too many parts, counting a repeated part each time."""
    waiting, count = [document], 0
    while waiting:
        node = waiting.pop()
        count += 1
        if count > MOST_NODES:
            raise ValueError("too large")
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _containers(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping that says what a container runs."""
    if isinstance(node, dict):
        if any(isinstance(node.get(key), (list, str)) for key in ("args", "command", "entrypoint", *SCRIPTS)):
            yield node
            return
        if isinstance(node.get("image"), str) and "vllm" in node["image"]:
            yield node
            return
        for value in node.values():
            yield from _containers(value)
    elif isinstance(node, list):
        for value in node:
            yield from _containers(value)


def _of_container(container: Mapping[str, Any]) -> Start | None:
    variables, names = _environment(next(filter(None, map(container.get, ENVIRONMENTS)), None))
    for script in SCRIPTS:
        text = container.get(script)
        if isinstance(text, list) and all(isinstance(line, str) for line in text):
            text = "\n".join(text)
        if isinstance(text, str) and (
            start := contained(None, None, [Word("sh"), Word("-c"), Word(text)], variables)
        ):
            start.left_out = [left for left in start.left_out if left.what != "sh -c"]
            return start
    compose = "args" not in container and ("entrypoint" in container or "environment" in container)
    first, second = ("entrypoint", "command") if "args" not in container else ("command", "args")
    image = container.get("image")
    if "args" not in container and "entrypoint" not in container and not compose and image is None:
        first, second = "command", "args"
    entrypoint = _words(container.get(first), variables)
    start = contained(
        image if isinstance(image, str) else None,
        entrypoint or None,
        _words(container.get(second), variables),
        variables,
    )
    if start is None and first == "entrypoint" and not entrypoint:
        # Without an image's own entry point, `command` is the program itself.
        start = contained(None, _words(container.get(second), variables) or None, [], variables)
    if start is not None:
        rest = [str(key) for key in container if key not in (first, second, "environment", "env", "name", "image")]
        start.leave(", ".join(rest), "paste.container", name=str(image or container.get("name") or "-"))
        start.leave(", ".join(names), "paste.environment")
    return start


def _environment(node: Any) -> tuple[dict[str, list[Word]], list[str]]:
    """Variables with literal values, and the names of all."""
    pairs: list[tuple[str, Any]] = []
    if isinstance(node, dict):
        pairs = [(str(name), value) for name, value in node.items()]
    for item in node if isinstance(node, list) else ():
        if isinstance(item, dict):
            pairs.append((str(item.get("name")), item.get("value")))
        elif isinstance(item, str):
            name, equals, value = item.partition("=")
            pairs.append((name, value if equals else None))
    literal = {name: [Word(value)] for name, value in pairs if isinstance(value, str) and "$" not in value}
    return literal, [name for name, _ in pairs]


def _words(node: Any, variables: Mapping[str, Sequence[Word]]) -> list[Word]:
    """The words of a list, or of a text that is split as a shell does."""
    if isinstance(node, str):
        return [word for command in commands(_plain(node), Notes(), variables) for word in command.words]
    return [_filled(str(word), variables) for word in node or () if isinstance(word, (str, int))]


def _plain(text: str) -> str:
    return text.replace("$$", r"\$")


VARIABLE = re.compile(r"\$\$|\$\((\w+)\)|\$\{(\w+)(?::?-([^{}]*))?\}|\$(\w+)")


def _filled(text: str, variables: Mapping[str, Sequence[Word]]) -> Word:
    """A word of a list, in which $(NAME) and ${NAME} are filled in before the container starts."""
    resolved: list[tuple[str, str]] = []
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name = match[1] or match[2] or match[4]
        literal = " ".join(word.text for word in variables[name]) if name in variables else match[3]
        if literal is None:
            missing.append(match[0])
            return match[0]
        resolved.append((name, literal))
        return literal

    if re.search(r"\s", text):
        # A script for a shell, which reads it later.
        return Word(text.replace("$$", "$"), next(iter(VARIABLE.findall(text.replace("$$", ""))), None) and "$")
    filled = VARIABLE.sub(value, text)
    return Word(filled, missing[0] if missing else None, tuple(resolved))


def _option_name(key: Any) -> str:
    return str(key).replace("_", "-")


def _config_options(config: Mapping[Any, Any], notes: Notes) -> Iterator[Option]:
    """The options of a --config file: a key is an option's name; a list several values; a table JSON."""
    for key, value in config.items():
        name = "model" if _option_name(key) == "model-tag" else str(key)
        if isinstance(value, list):
            value = [str(part) for part in value]
        elif not isinstance(value, (bool, dict)) and value is not None:
            value = str(value)
        yield of_pair(name, value, notes)


def is_dockerfile(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return INSTRUCTION.match(first) is not None


def start_of_dockerfile(text: str, notes: Notes) -> Start | None:
    """What the image of a Dockerfile runs."""
    image: str | None = None
    words: dict[str, list[Word]] = {}
    # As docker does, comments are dropped before lines are joined.
    joined = re.sub(r"\\[ \t]*\n", " ", re.sub(r"^[ \t]*#.*\n", "", text, flags=re.MULTILINE))
    for line in joined.splitlines():
        match = re.match(r"([A-Z]+)\s+(.*)", line.strip())
        if match is None:
            continue
        instruction, rest = match.groups()
        if instruction in EXEC:
            words[instruction] = _exec_words(rest, notes)
        elif instruction == "FROM":
            image = rest.split()[0]
            words = {}
        else:
            names = re.findall(r"([A-Za-z_]\w*)=", rest) if instruction == "ENV" else []
            notes.leave(" ".join([instruction, *names]), "paste.other_command")
    if not words:
        return None
    return contained(image, words.get("ENTRYPOINT") or None, words.get("CMD", []))


def is_quadlet(text: str) -> bool:
    return re.search(r"^\[Container\][ \t]*$", text, re.MULTILINE) is not None


def start_of_quadlet(text: str) -> Start | None:
    """What the container of a Podman Quadlet file runs."""
    joined = re.sub(r"\\[ \t]*\n", " ", text)
    keys = dict(re.findall(r"^([A-Z]\w*)=(.*)$", joined, re.MULTILINE))
    start = contained(keys.pop("Image", None), keys.pop("Entrypoint", None), _words(keys.pop("Exec", ""), {}))
    if start is not None:
        start.leave(", ".join(keys), "paste.container", name="podman")
    return start


def _exec_words(text: str, notes: Notes) -> list[Word]:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        listed = None
    if isinstance(listed, list):
        return [Word(str(word)) for word in listed]
    return [word for command in commands(text, notes)[:1] for word in command.words]
