"""An engine of the host's own: a command in its configuration, in which {model} and {port} stand for what it is to
serve, and where."""

from __future__ import annotations

import shlex

from .kind import Kind, Launch
from .program import Program, has_gpus, script


def kind(name: str, command: str) -> Kind:
    """The engine of this name and command."""
    words = shlex.split(command)

    def find() -> Program | None:
        path = script(words[0])
        return Program((path,), "", "cuda" if has_gpus() else "cpu") if path else None

    def filled(launch: Launch) -> list[str]:
        return [word.replace("{model}", launch.target).replace("{port}", str(launch.port)) for word in words[1:]]

    return Kind(
        name=name,
        find=find,
        brings=words[0],
        typed=words[0],
        words=filled,
        answers_to=lambda launch: launch.target,
    )
