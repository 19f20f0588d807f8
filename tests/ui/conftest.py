"""The playground as a process, and a browser to look at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright
from support.browser import SHOTS, App
from support.real import embedded_model

from benchmarks.common import ARGUMENTS, CHROMIUM, folder, real_app, stand_in


@pytest_asyncio.fixture
async def app() -> AsyncIterator[App]:
    """The playground as a user starts it, with a history of its own."""
    model = await embedded_model()
    with folder() as place, real_app(place, {"PLAYGROUND_MODELS": str(model.parent)}) as started:
        yield started


@pytest.fixture(scope="session")
def stand_in_app() -> Iterator[App]:
    """One with stand-ins for engines, for all tests that leave nothing behind which others count."""
    model = asyncio.run(embedded_model())
    with folder() as place:
        more = stand_in(place, rate=200) | {"PLAYGROUND_MODELS": str(model.parent)}
        with real_app(place, more) as started:
            yield started


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    SHOTS.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        await launched.close()
