"""The playground as a process, and a browser to look at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright
from support.browser import ARGUMENTS, CHROMIUM, SHOTS, started
from support.real import embedded_model, until


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="pg-"))
    yield made
    shutil.rmtree(made)


@pytest_asyncio.fixture
async def app(folder: Path) -> AsyncIterator[tuple[subprocess.Popen[bytes], str]]:
    """The playground as a user starts it, with a history of its own."""
    model = await embedded_model()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PLAYGROUND_DB": str(folder / "history.db"),
        "PLAYGROUND_STATE": str(folder / "state"),
        "PLAYGROUND_MODELS": str(model.parent),
        "PLAYGROUND_PORT": str(port),
    }
    process = started(environment)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, "the app ended"
        try:
            return httpx.get(url).is_success
        except httpx.HTTPError:
            return False

    await until(answers, within_s=120)
    yield process, url
    if process.poll() is None:
        process.terminate()
        process.wait(timeout=60)


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    SHOTS.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        await launched.close()
