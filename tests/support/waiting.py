"""Waiting for what sends no event: processes and files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import psutil


def eventually(condition: Callable[[], bool], within_s: float = 60) -> bool:
    """True as soon as `condition` is; False if it never was. The limit only bounds a failing test."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


async def until(condition: Callable[[], bool], within_s: float = 120) -> None:
    """`eventually` where an event loop runs: TimeoutError if it never was."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - the condition is about processes and files, which send no event
            await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    """No such process runs; one that ended and waits to be reaped counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
