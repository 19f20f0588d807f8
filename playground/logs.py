"""How the page's process logs: lines for people, or one line of JSON an event."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from playground.domain.errors import PlaygroundError
from playground.i18n import say_message

# Ids of runs and sweeps, as messages name them.
RUN = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4,}\b")


class JsonLines(logging.Formatter):
    """`run` is there where a message names a run or sweep, `traceback` after an exception."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        event: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
        }
        if (run := RUN.search(message)) is not None:
            event["run"] = run[0]
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def begin(form: str) -> None:
    """Log from now on, as "text" or "json"."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())
    logging.getLogger("httpx").setLevel(logging.WARNING)


def refused(logger: logging.Logger, error: PlaygroundError, text: str, *args: object) -> None:
    """Log what could not be done, and why, in a line; with a traceback only where something unexpected is behind
    it."""
    logger.warning(f"{text}: %s", *args, say_message(error), exc_info=error if error.__cause__ else None)
