"""Every test has a host of its own: folders, database, sockets. Nothing is read from the person's home."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio
from support.foreign import Foreign, Kind, foreign
from support.paths import CHILD_PATH
from support.real import embedded_gguf, embedded_model

from playground.config import Config
from playground.engine import runtime as runtimes
from playground.engine.kinds.table import kinds
from playground.engine.runtime import Runtime
from playground.runs import measured
from playground.runs.host import Host
from playground.store import History

pytest_plugins = ["support.schedule"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report parses source code. In CPython 3.11 that ends with a SystemError, and the whole session with it, if
    meanwhile a forgotten task is collected whose traceback is logged: that parses source code, too."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


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


@pytest.fixture
def history(config: Config) -> History:
    return History(config.db)


@pytest.fixture
def fake_runtime(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m support.fake_server` takes and ignores an engine's own arguments."""
    runtime = Runtime(
        "default",
        Path(sys.executable),
        "0.32.0",
        "cpu",
        "support.fake_server",
        None,
        frozenset({"--dtype", "--speculative-config"}),
    )
    probe = runtimes.probe
    monkeypatch.setattr(
        runtimes, "probe", lambda config, name: probe(config, name) if name in kinds(config) else runtime
    )
    monkeypatch.setenv("PYTHONPATH", CHILD_PATH)
    folder = config.models / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")


@pytest.fixture
def unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """For pages whose handlers are called and which nobody serves. Gradio makes a web application twice while it
    builds a page, which takes most of that time."""
    monkeypatch.setattr("gradio.routes.App.create_app", lambda *_, **__: None)


@pytest_asyncio.fixture
async def host(config: Config, fake_runtime: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    # What stands in for an engine is warm from the start.
    monkeypatch.setattr(measured, "WARM_UP_PASSES", 1)
    made = Host(config)
    made.tidy_up()
    made.open()
    yield made
    await made.close()


@pytest.fixture(scope="session")
def foreign_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Kind], Foreign]]:
    """Each server is started when it is first asked for, and ends with the last test."""
    work = tmp_path_factory.mktemp("foreign")
    with ExitStack() as stack:

        @cache
        def started(kind: Kind) -> Foreign:
            model = asyncio.run(embedded_model())
            gguf = asyncio.run(embedded_gguf(work))
            return stack.enter_context(foreign(kind, model, gguf, work / f"{kind}.log"))

        yield started
