"""Every test has a host of its own: folders, database, sockets. Nothing is read from the person's home."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playground.config import Config  # noqa: E402

# For processes that tests start: they find both the playground and the fake server.
CHILD_PATH = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"


@pytest.fixture(autouse=True)
def own_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("PLAYGROUND_", "HF_")):
            monkeypatch.delenv(name)
    # tmp_path is too long for a Unix socket, whose path has room for 107 bytes.
    state = tempfile.mkdtemp(prefix="pg", dir="/tmp")
    monkeypatch.setenv("PLAYGROUND_DB", str(tmp_path / "history.db"))
    monkeypatch.setenv("PLAYGROUND_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PLAYGROUND_STATE", state)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PYTHONPATH", CHILD_PATH)
    yield
    shutil.rmtree(state)


@pytest.fixture
def lm_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-evaluation-harness on the PATH, in an environment of its own as a user's may be: `make` installs it."""
    folder = Path(sys.prefix) / "lm-eval" / "bin"
    assert (folder / "lm_eval").exists(), "make install puts it there"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))


@pytest.fixture
def config() -> Config:
    return Config.from_environment()


def eventually(condition: Callable[[], bool], within_s: float = 20) -> bool:
    """True as soon as `condition` is; False if it never was. The limit only bounds a failing test."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


async def until(condition: Callable[[], bool], within_s: float = 30) -> None:
    """`eventually` where an event loop runs: TimeoutError if it never was."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - the condition is about processes and files, which send no event
            await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    """No such process runs; one that ended and waits to be reaped counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
