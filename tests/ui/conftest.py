"""The playground as a process, and a browser to look at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser
from support.browser import App
from support.real import embedded_model

from benchmarks.common import browser as chromium
from benchmarks.common import folder, real_app, stand_in


@pytest.fixture(scope="session")
def stand_in_app() -> Iterator[App]:
    """On stand-ins for engines, for all tests that leave nothing behind which others count."""
    model = asyncio.run(embedded_model())
    with folder() as place:
        more = stand_in(place, rate=200) | {"PLAYGROUND_MODELS": str(model.parent)}
        with real_app(place, more) as started:
            yield started


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as launched:
        yield launched
