"""One host for all tests here, for starting engines takes long. About five minutes on two cores.

They build on each other in the order of the files: the page starts the engines, which then race again, answer
questions, and change their settings; at last they are measured, on other cores.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser
from support.browser import page_of
from support.real import real_host

from benchmarks.common import browser as chromium
from playground import presets
from playground.presets import Preset
from playground.runs.host import Host


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def host() -> AsyncIterator[Host]:
    async with real_host() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="package")
async def page_url(host: Host) -> AsyncIterator[str]:
    async with page_of(host) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as launched:
        yield launched


@pytest.fixture(scope="package")
def preset() -> Preset:
    """Speculation off, and n-gram; both in float32. Half of the story says what all of it would."""
    preset = presets.load("smollm2-ngram")
    sampling = preset.workload.sampling.model_copy(update={"max_tokens": 56})
    return preset.model_copy(update={"workload": preset.workload.model_copy(update={"sampling": sampling})})
