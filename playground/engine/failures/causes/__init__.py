"""The table of causes: what a log says when an engine failed for one of them, and what to change then.

A cause is an entry in one of these files, two sentences in messages/failures.toml (`failure.NAME`, `remedy.NAME`),
a log of it among the tests, and a row in docs/failures.md.
"""

from __future__ import annotations

from . import devices, ends, host, memory, models, runtime, settings
from .cause import Cause

__all__ = ["BY_NAME", "CAUSES", "SIGNALS", "Cause"]

# The first that is found wins, so the more specific causes stand first.
CAUSES: tuple[Cause, ...] = (
    *settings.CAUSES,
    *host.CAUSES,
    *memory.CAUSES,
    *devices.CAUSES,
    *models.CAUSES,
    *runtime.CAUSES,
    *settings.GENERAL,
    *ends.CAUSES,
)
BY_NAME = {cause.name: cause for cause in CAUSES}
SIGNALS = ends.SIGNALS
