"""One host for all tests here, for starting engines takes long. About five minutes on two cores.

They build on each other in the order of the files: the first race, what its engines answer, other settings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.real import real_host

from playground import presets
from playground.presets import Preset
from playground.runs.host import Host


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def host() -> AsyncIterator[Host]:
    async with real_host() as made:
        yield made


@pytest.fixture(scope="package")
def preset() -> Preset:
    """Speculation off, and n-gram; both in float32."""
    return presets.load("smollm2-ngram")
