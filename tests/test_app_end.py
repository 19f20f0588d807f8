"""The app as a process: SIGTERM ends it, and all that it started, within seconds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest
from support.paths import ROOT
from support.waiting import eventually, gone

from benchmarks.common import app, free_port
from benchmarks.visitor import Visitor
from playground.store import History

# The contract is 5 s; a loaded machine may take longer to come round to it.
SECONDS = 20


def ended(process: subprocess.Popen[bytes], *, signals: int = 1) -> int:
    """The exit code after SIGTERM; all that the process started is gone with it."""
    started = psutil.Process(process.pid).children(recursive=True)
    for _ in range(signals):
        process.send_signal(signal.SIGTERM)
    code = process.wait(SECONDS)
    assert eventually(lambda: all(gone(child.pid) for child in started), within_s=SECONDS)
    return code


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with app(tmp_path, rate=20) as started:
        yield started


async def test_while_a_visitor_watches_a_race(
    running: tuple[subprocess.Popen[bytes], str], tmp_path: Path
) -> None:
    """With half-open connections, too; a second and third signal change nothing."""
    process, url = running
    address = httpx.URL(url)
    async with Visitor(url) as visitor:
        await visitor.arrive()
        visitor.fill(asked_max_tokens=1000)
        await visitor.press("race")
        with ExitStack() as stack:
            for sent in (b"", b"GET / HTTP/1.1\r\nHost: loc") * 5:
                half_open = stack.enter_context(socket.create_connection((address.host, address.port)))
                half_open.sendall(sent)
            history = History(tmp_path / "history.db")
            assert eventually(lambda: bool(history.summaries()))
            assert ended(process, signals=3) == 0
    (run,) = history.summaries()
    assert run.status == "stopped"


HANGING = """
import time
import app
from playground.ui.server.server import Server

def close(self):
    print("closing", flush=True)
    time.sleep(600)

Server.close = close
app._exit(app.main())
"""


def test_although_the_close_hangs(tmp_path: Path) -> None:
    """As with a file system that never answers."""
    environment = {**os.environ, "PLAYGROUND_PORT": str(free_port())}
    command = [sys.executable, "-c", HANGING]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "http://" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "closing\n"
        assert process.wait(SECONDS) == 1


def test_while_it_starts(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=ROOT, env={**os.environ, "PLAYGROUND_PORT": str(free_port())}
    )
    state = Path(os.environ["PLAYGROUND_STATE"])
    assert eventually(lambda: any(state.glob("uploads-*")))
    assert ended(process) in (0, 1)
