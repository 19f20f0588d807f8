"""An app under attack, its visitor, and what its history and its answers say."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from benchmarks.common import real_app, stand_in
from benchmarks.visitor import Visitor

MIB = 1024**2
KEY = "sk-attack-0123456789abcdef"


@contextlib.asynccontextmanager
async def visited(place: Path, **more: str) -> AsyncIterator[tuple[Visitor, str, int]]:
    """An app with one visitor; `more` are its environment variables. Yields visitor, address and process id."""
    with real_app(place, stand_in(place, rate=200) | more) as (process, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            yield visitor, url, process.pid


def runs(place: Path) -> list[tuple[str, str]]:
    """Ids and statuses in the history; none as long as there is no history."""
    with (
        contextlib.closing(sqlite3.connect(place / "history.db")) as db,
        contextlib.suppress(sqlite3.OperationalError),
    ):
        return db.execute("SELECT id, status FROM runs ORDER BY created_at").fetchall()
    return []


def refused(message: dict[str, object]) -> bool:
    """Whether the page answered that it can't."""
    said = json.dumps(message.get("output"))
    return 'class=\\"alert' in said or 'class=\\"bad' in said


async def pressed(visitor: Visitor, button: str) -> str:
    """Press the button: "accepted", or "refused" with what the page answered."""
    try:
        message = await visitor.press(button)
    except httpx.HTTPStatusError as error:
        return f"refused with {error.response.status_code}"
    except httpx.TransportError as error:
        return f"refused ({type(error).__name__})"
    return "refused" if refused(message) else "accepted"
