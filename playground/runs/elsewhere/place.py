"""Where a comparison can be measured other than here."""

from __future__ import annotations

import asyncio
from typing import Protocol

# What a place runs. It reads the case from its standard input, in one line, and stops when that ends.
MEASURE = "python -m playground compare --case - --json"


class Place(Protocol):
    """Takes one comparison at a time. `name` is what people call it."""

    name: str

    async def measure(self, case: str, stopping: asyncio.Event, within_s: float) -> str:
        """The JSON document that `compare --case` prints for this case, a line of JSON; once `stopping` is set,
        that of what was measured so far. Raises WorkFailed if none came within `within_s` seconds: nothing of it
        runs any more then, as far as can be told from here."""
