"""A model's name -> its GGUF file: a file, one in the models folder, a folder that holds just one, or the embedded
default, which is fetched."""

from __future__ import annotations

import contextlib
from pathlib import Path

import filelock

from playground import private_files
from playground.config import Config
from playground.domain.errors import InvalidInput

from . import fetch_errors
from .fetch import GGUF_MEMBER, OnProgress, embedded_gguf, workspace
from .folders import EMBEDDED, EMBEDDED_FOLDER, check_allowed

# The name says how its weights are quantized.
EMBEDDED_FILE = GGUF_MEMBER.rpartition("/")[2]


def local_file(config: Config, name: str) -> Path | None:
    """The file, if it is on this machine."""
    if name in (EMBEDDED, EMBEDDED_FOLDER):
        file = config.models / EMBEDDED_FILE
        return file if file.is_file() else None
    # The path may be too long for the system, unreadable, or in the home of somebody who does not exist.
    with contextlib.suppress(OSError, RuntimeError):
        for path in (config.models / name, config.models / name.replace("/", "--"), Path(name).expanduser()):
            files = [path] if path.suffix == ".gguf" and path.is_file() else list(path.glob("*.gguf"))
            if len(files) == 1:
                return files[0]
    return None


def check_name(config: Config, name: str) -> None:
    """Raises InvalidInput for a name without a GGUF file."""
    if name not in (EMBEDDED, EMBEDDED_FOLDER) and local_file(config, name) is None:
        raise InvalidInput("model.no_gguf", name=name, folder=str(config.models))


async def ensure(config: Config, name: str, on_progress: OnProgress) -> Path:
    """The model's file, fetched first if it is the embedded default's. Raises InvalidInput, ModelUnavailable."""
    check_allowed(config, name)
    check_name(config, name)
    if file := local_file(config, name):
        return file
    destination = config.models / EMBEDDED_FILE
    with fetch_errors.translated(name, config.models):
        private_files.make_folder(config.models)
        async with filelock.AsyncFileLock(config.models / f".{EMBEDDED_FILE}.lock", mode=0o600):
            # Another process may have fetched it meanwhile.
            if not destination.is_file():
                with workspace(destination) as work:
                    (await embedded_gguf(config, work, on_progress)).replace(destination)
    return destination
