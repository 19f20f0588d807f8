"""How long engines took to start on this host."""

from __future__ import annotations

import logging

from playground.domain.errors import PlaygroundError
from playground.i18n import say_message
from playground.store import History

logger = logging.getLogger(__name__)


def earlier_starts(history: History, device: str) -> list[float]:
    """Seconds of the last starts on this kind of device ("cpu" or "cuda"); none if the history can't be read."""
    try:
        return history.start_seconds(device)
    except PlaygroundError as error:
        logger.warning("earlier starts are unknown: %s", say_message(error))
        return []
