"""Paints something under way once, and hands it to everybody who follows it.

Gradio's queue has 40 places: a follower who held one would keep others from following, and from stopping a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from typing import Protocol

logger = logging.getLogger(__name__)

# The longest wait of a newcomer for the first picture, in seconds.
NEWCOMER_S = 0.1
# Seconds that each follower adds to the time between two pictures: sending takes a processor its time, too.
FOLLOWER_S = 0.001
# Events that wait for a slow connection; beyond that it starts anew, with everything.
MOST_WAITING = 100
# Seconds without an event after which a comment is sent: proxies close connections that are silent.
SILENT_S = 15.0
END = b"event: end\ndata:\n\n"

# The parts of the page, each with its new value.
Parts = Mapping[str, str]


class Feed(Protocol):
    """A picture of something under way: some parts of the page, painted again every `interval_s` seconds."""

    interval_s: float

    @property
    def finished(self) -> bool:
        """Whether nothing will change any more."""

    async def changes(self) -> Parts:
        """What has changed since the last call."""

    async def whole(self) -> Parts:
        """Everything, for a newcomer; `changes` tells the others what it would have told them anyway."""


def event(part: str, value: str) -> bytes:
    """A server-sent event."""
    lines = "".join(f"data: {line}\n" for line in value.replace("\r", "").split("\n"))
    return f"event: {part}\n{lines}\n".encode()


def _events(parts: Parts) -> list[bytes]:
    return [event(part, value) for part, value in parts.items()]


class _Follower:
    """What one connection has still to send. `behind`: the feeds of which it needs the whole picture."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = feeds
        self._waiting: list[bytes] = []
        self._arrived = asyncio.Event()
        self._ended = False
        self.behind = {*feeds}

    def put(self, events: Sequence[bytes]) -> None:
        if len(self._waiting) + len(events) > MOST_WAITING:
            self._waiting.clear()
            self.behind = {*self._feeds}
        else:
            self.put_last(events)

    def put_last(self, events: Sequence[bytes]) -> None:
        """What no later picture would make up for."""
        self._waiting += events
        self._arrived.set()

    def end(self) -> None:
        self._ended = True
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self._ended or self._waiting:
            try:
                async with asyncio.timeout(SILENT_S):
                    await self._arrived.wait()
            except TimeoutError:
                yield b":\n\n"
                continue
            self._arrived.clear()
            sent, self._waiting = b"".join(self._waiting), []
            if sent:
                yield sent


class _Channel:
    """Paints as long as anybody follows."""

    def __init__(self, name: Hashable, feeds: Sequence[Feed]) -> None:
        self._name = name
        self._feeds = feeds
        self.followers: set[_Follower] = set()
        self.task = asyncio.create_task(self._paint())

    def join(self) -> _Follower:
        follower = _Follower(self._feeds)
        self.followers.add(follower)
        return follower

    async def _paint(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for feed in self._feeds:
                    # Each at its own pace: drawing never delays a token.
                    group.create_task(self._repaint(feed))
            last = [item for feed in self._feeds for item in _events(await feed.whole())]
            for follower in self.followers:
                follower.put_last([*last, END])
        except Exception:
            # The page connects again.
            logger.exception("%s could not be painted", self._name)
        finally:
            for follower in self.followers:
                follower.end()

    async def _repaint(self, feed: Feed) -> None:
        clock = asyncio.get_running_loop().time
        due = 0.0
        while not feed.finished:
            if clock() >= due:
                due = clock() + max(feed.interval_s, FOLLOWER_S * len(self.followers))
                if changes := _events(await feed.changes()):
                    for follower in self.followers:
                        if feed not in follower.behind:
                            follower.put(changes)
            if any(feed in follower.behind for follower in self.followers):
                whole = _events(await feed.whole())
                for follower in self.followers:
                    if feed in follower.behind:
                        follower.behind.discard(feed)
                        follower.put(whole)
            await asyncio.sleep(min(feed.interval_s, NEWCOMER_S))


class Channels:
    """What is followed now. Nothing is painted that nobody follows."""

    def __init__(self) -> None:
        self._channels: dict[Hashable, _Channel] = {}

    async def follow(self, name: Hashable, feeds: Callable[[], Sequence[Feed]]) -> AsyncIterator[bytes]:
        """The events of one connection, until everything has ended. `feeds` is called for the first follower."""
        channel = self._channels.get(name)
        if channel is None or channel.task.done():
            channel = self._channels[name] = _Channel(name, feeds())
        follower = channel.join()
        try:
            async for events in follower:
                yield events
        finally:
            channel.followers.discard(follower)
            if not channel.followers:
                channel.task.cancel()
                if self._channels.get(name) is channel:
                    del self._channels[name]
