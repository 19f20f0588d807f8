"""The command line of `docker run` and its like: its own options, the image, and what the image is to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

RUNNERS = ("docker", "docker.exe", "podman", "nerdctl", "apptainer", "singularity", "kubectl")
STARTS = ("run", "create")
# Options that take no value.
SWITCHES = re.compile(
    "detach|interactive|tty|rm|init|privileged|read-only|no-healthcheck|oom-kill-disable|publish-all|sig-proxy|quiet|"
    "disable-content-trust|replace|rmi|tls-verify|no-hosts|no-hostname|env-host|http-proxy|read-only-tmpfs|"
    "nv|rocm|cleanenv|containall|writable-tmpfs|fakeroot|nvccli|contain"
)
SHORT_SWITCHES = re.compile("-[ditqPh]+")
# Words between the program and `run`, as in docker --context x container run.
MOST_BETWEEN = 4


@dataclass
class ContainerRun:
    """`at` and `after`: the places of the program and of what the image gets. `options` and `variables`: the names
    of its own options and of the environment's variables, without values."""

    name: str
    at: int
    after: int
    image: str
    entrypoint: str | None = None
    options: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)


def container_run(texts: Sequence[str]) -> ContainerRun | None:
    """None for what runs no container, or names no image."""
    at = next((at for at, text in enumerate(texts) if text.rpartition("/")[2] in RUNNERS), None)
    if at is None:
        return None
    end = min(at + 1 + MOST_BETWEEN, len(texts))
    run = next((place for place in range(at + 1, end) if texts[place] in STARTS), None)
    if run is None:
        return None
    name = texts[at].rpartition("/")[2]
    return _kubectl(texts, at) if name == "kubectl" else _read(ContainerRun(name, at, run + 1, ""), texts)


def _read(container: ContainerRun, texts: Sequence[str]) -> ContainerRun | None:
    place = container.after
    while place < len(texts) and texts[place].startswith("-") and texts[place] != "--":
        option, value = _option(texts[place])
        place += 1
        if value is None and not SWITCHES.fullmatch(option.lstrip("-")) and not SHORT_SWITCHES.fullmatch(option):
            value = texts[place] if place < len(texts) else ""
            place += 1
        if option == "--entrypoint":
            container.entrypoint = value
        elif option in ("-e", "--env"):
            container.variables.append((value or "").partition("=")[0])
        container.options.append(option)
    if place >= len(texts):
        return None
    container.image, container.after = texts[place], place + 1
    return container


def _option(text: str) -> tuple[str, str | None]:
    """The option, and the value in the same word."""
    if text.startswith("--"):
        option, equals, value = text.partition("=")
        return option, value if equals else None
    if len(text) > 2 and not SHORT_SWITCHES.fullmatch(text):
        return text[:2], text[2:].removeprefix("=")
    return text, None


def _kubectl(texts: Sequence[str], at: int) -> ContainerRun | None:
    """`kubectl run NAME --image=IMAGE -- ...`."""
    image = next((text.partition("=")[2] for text in texts if text.startswith("--image=")), None)
    if image is None or "--" not in texts[at:]:
        return None
    end = texts.index("--", at)
    options = [text.partition("=")[0] for text in texts[at:end] if text.startswith("-")]
    return ContainerRun("kubectl", at, end + 1, image, options=options)
