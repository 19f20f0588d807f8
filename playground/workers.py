"""Blocking work in threads of its own, a bounded number for each kind: what waits for a slow hub keeps nobody else
waiting. The threads are daemons, so that the end of the process waits for none of them."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from playground.domain.errors import WorkFailed

P = ParamSpec("P")
T = TypeVar("T")

# The future of the job that runs in this context.
_current: contextvars.ContextVar[asyncio.Future[Any] | None] = contextvars.ContextVar("_current", default=None)


def abandoned() -> bool:
    """Whether nobody waits any more for the job that asks this. A long job asks now and then, and gives up."""
    future = _current.get()
    return future is not None and future.cancelled()


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all of it at once, and return what each returns. If one raises, the others are cancelled, and it is
    raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


class Workers:
    """At most `most` jobs at a time; at most `waiting` others wait in line (None: any number)."""

    def __init__(self, name: str, most: int, waiting: int | None = None) -> None:
        self._name = name
        self._most = most
        self._waiting = waiting
        self._started = 0
        self._unfinished = 0
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns or raises. Raises WorkFailed if too many jobs wait.

        Cancelling frees the caller at once. A job that had not begun is then left out; one that has begun can see
        it (`abandoned`).
        """
        job: Future[T] = Future()
        self._admit(job)
        waiter = asyncio.wrap_future(job)
        context = contextvars.copy_context()
        context.run(_current.set, waiter)
        self._jobs.put((job, partial(context.run, partial(function, *args, **kwargs))))
        return await waiter

    def _admit(self, job: Future[Any]) -> None:
        with self._lock:
            if self._waiting is not None and self._unfinished >= self._most + self._waiting:
                raise WorkFailed("host.too_many_wait", waiting=self._waiting)
            self._unfinished += 1
            if self._started < min(self._unfinished, self._most):
                self._started += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        # The first to be called: whoever waited for the job finds its place free.
        job.add_done_callback(self._finished)

    def _finished(self, _: Future[Any]) -> None:
        with self._lock:
            self._unfinished -= 1

    def _serve(self) -> None:
        while True:
            job, work = self._jobs.get()
            if job.set_running_or_notify_cancel():
                _settle(job, work)
            # Nothing of this job is kept while the next one is awaited.
            del job, work


def _settle(job: Future[Any], work: Callable[[], Any]) -> None:
    try:
        job.set_result(work())
    except BaseException as error:  # noqa: BLE001
        # Whoever waits for the job gets it.
        job.set_exception(error)


# What the run under way needs: runtimes, models, prompts, causes of failures.
RUNS = Workers("runs", 4)
# What a form is turned into: runs to start, plans of sweeps.
FORMS = Workers("forms", 4, waiting=64)
# "Check first", which may have to ask the hub.
CHECKS = Workers("checks", 4, waiting=32)
