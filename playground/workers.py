"""Threads for blocking work, so many and no more of each kind, so that no kind of work waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """At most `most` threads, started when they are needed; calls beyond wait in line. The interpreter's exit
    waits for none of them."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._starting = Lock()
        self._threads = 0

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns or raises. If the caller is cancelled it waits no longer: a call in line is
        dropped, one under way goes on unheard."""
        future: Future[T] = Future()
        self._calls.put((future, partial(function, *args, **kwargs)))
        with self._starting:
            if self._threads < self._most:
                self._threads += 1
                Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            future, call = self._calls.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                future.set_exception(error)
            # Kept, the last call's result would stay in memory until the next.
            del future, call
