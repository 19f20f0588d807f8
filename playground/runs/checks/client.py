"""Asks a side's server for whole answers, a few at a time. Nothing here is timed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
from typing import Any, Self, TypeVar

import httpx

from playground.domain.spec.workload import Conversation, Sampling
from playground.load.endpoint import Endpoint

AT_ONCE = 4

T = TypeVar("T")
OnProgress = Callable[[int, int], None]


class AnswerClient:
    """A client of one side's server. An answer that the server refuses, or does not give in time, is None."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._client = endpoint.client(timeout_s, AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def answer(self, conversation: Conversation, sampling: Sampling) -> bytes | None:
        """The whole answer's JSON."""
        body = self.endpoint.body(conversation, sampling) | {"stream": False}
        body.pop("stream_options", None)
        return await self.ask(self.endpoint.path, body)

    async def ask(self, path: str, body: Mapping[str, Any]) -> bytes | None:
        # Salted, so that what a later run finds in the prefix cache does not depend on this.
        salt = self.endpoint.new_salt(salted=True)
        try:
            # The client's own timeout only bounds its silence: nothing comes before the answer is made, and then
            # all of it at once.
            async with asyncio.timeout(2 * self._timeout_s):
                response = await self._client.post(path, json={**body, **({"cache_salt": salt} if salt else {})})
        except (httpx.HTTPError, TimeoutError):
            return None
        if response.status_code != httpx.codes.OK:
            return None
        return "".join(self.endpoint.keyless([response.content.decode(errors="replace")])).encode()


async def together(jobs: Sequence[Coroutine[Any, Any, T]], on_progress: OnProgress) -> list[T]:
    """Await all and return the results in order. `on_progress` receives how many are done, and how many there
    are."""
    answered = count(1)
    on_progress(0, len(jobs))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        for task in tasks:
            task.add_done_callback(lambda _: on_progress(next(answered), len(jobs)))
    return [task.result() for task in tasks]
