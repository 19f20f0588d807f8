"""Every test has a host of its own: folders, database, sockets. Nothing is read from the person's home."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import CHILD_PATH

from playground.config import Config


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
