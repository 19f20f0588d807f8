"""Followers of one thing: painted once for all of them, nobody misses anything, nobody slows down the others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from support.waiting import until

from playground.ui.live import channel
from playground.ui.live.channel import END, Channels, Parts


class Letters:
    """A text that grows by one letter a change. The parts say what a page would have to know, and what is new."""

    def __init__(self, interval_s: float = 0.001) -> None:
        self.interval_s = interval_s
        self.finished = False
        self.text = ""
        self.painted = {"changes": 0, "whole": 0}

    async def changes(self) -> Parts:
        self.painted["changes"] += 1
        before, self.text = len(self.text), self.text + chr(ord("a") + len(self.text) % 26)
        await asyncio.sleep(0)
        return {"grown": f"{before}:{self.text[before:]}"}

    async def whole(self) -> Parts:
        self.painted["whole"] += 1
        text = self.text
        await asyncio.sleep(0)
        return {"whole": text}


def text_of(received: bytes) -> str:
    """What a page shows that has received this. Asserts that nothing is missing in between."""
    text = ""
    for part, value in re.findall(r"event: (\w+)\ndata: (.*)\n\n", received.decode()):
        if part == "whole":
            text = value
        else:
            start, _, letters = value.partition(":")
            assert int(start) <= len(text)
            text += letters[len(text) - int(start) :]
    return text


class Follower:
    """One connection, which reads as long as it may."""

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        self.received = b""
        self.reads = asyncio.Event()
        self.reads.set()
        self._events = events
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for events in self._events:
            self.received += events
            await self.reads.wait()

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self._events.aclose()  # type: ignore[attr-defined]


async def test_a_hundred_followers_are_painted_for_once() -> None:
    channels, feed = Channels(), Letters()
    followers = []
    for number in range(100):
        followers.append(Follower(channels.follow("run", lambda: [feed])))
        # They come at different times.
        if number % 10 == 0:
            last = followers[-1]
            await until(lambda: last.received != b"")  # noqa: B023 - awaited here
    await until(lambda: all(len(text_of(follower.received)) > 50 for follower in followers))
    feed.finished = True
    await asyncio.gather(*(follower.task for follower in followers))
    for follower in followers:
        assert text_of(follower.received) == feed.text
        assert follower.received.endswith(END)
    assert feed.painted["changes"] == len(feed.text)
    # Those who came together were painted for together.
    assert feed.painted["whole"] <= 20


async def test_nothing_is_painted_that_nobody_follows() -> None:
    channels, feeds = Channels(), []

    def made() -> list[Letters]:
        feeds.append(Letters())
        return [feeds[-1]]

    first, second = Follower(channels.follow("run", made)), Follower(channels.follow("run", made))
    await until(lambda: len(text_of(second.received)) > 3)
    await first.leave()
    painted = feeds[0].painted["changes"]
    await until(lambda: feeds[0].painted["changes"] > painted)
    await second.leave()
    painted = feeds[0].painted["changes"]
    await asyncio.sleep(20 * feeds[0].interval_s)
    assert feeds[0].painted["changes"] == painted
    # Somebody who comes later gets all of it.
    third = Follower(channels.follow("run", made))
    await until(lambda: len(text_of(third.received)) > 3)
    assert len(feeds) == 2
    await third.leave()


async def test_one_who_does_not_read_starts_anew_and_costs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MOST_WAITING", 10)
    channels, feed = Channels(), Letters()
    slow, quick = (
        Follower(channels.follow("run", lambda: [feed])),
        Follower(channels.follow("run", lambda: [feed])),
    )
    await until(lambda: slow.received != b"")
    slow.reads.clear()
    await until(lambda: len(text_of(quick.received)) > 200)
    waiting = [follower._waiting for opened in channels._channels.values() for follower in opened.followers]
    assert max(map(len, waiting)) <= 10
    slow.reads.set()
    await until(lambda: text_of(slow.received).startswith(feed.text[:200]))
    slow.reads.clear()
    await until(lambda: len(text_of(quick.received)) > 400)
    # The end is heard, and the last picture is whole.
    feed.finished = True
    await quick.task
    slow.reads.set()
    await slow.task
    assert text_of(slow.received) == feed.text
    assert slow.received.endswith(END)


async def test_a_slow_feed_does_not_delay_another() -> None:
    class Slow(Letters):
        async def changes(self) -> Parts:
            await drawn.wait()
            return {"charts": "drawn"}

    drawn, text, charts = asyncio.Event(), Letters(), Slow()
    follower = Follower(Channels().follow("run", lambda: [text, charts]))
    await until(lambda: len(text_of(follower.received)) > 20)
    drawn.set()
    await until(lambda: b"event: charts" in follower.received)
    text.finished = charts.finished = True
    await follower.task


async def test_a_picture_that_fails_is_logged_and_the_connection_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Without an `end`: the page connects again."""

    class Broken(Letters):
        async def changes(self) -> Parts:
            raise ValueError("broken")

    follower = Follower(Channels().follow("run-1", lambda: [Broken()]))
    await follower.task
    assert follower.received == b""
    assert "run-1" in caplog.text
    assert "broken" in caplog.text


async def test_silence_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies close silent connections."""

    class Still(Letters):
        async def changes(self) -> Parts:
            return {}

        whole = changes

    monkeypatch.setattr(channel, "SILENT_S", 0.001)
    follower = Follower(Channels().follow("run", lambda: [Still()]))
    await until(lambda: b":\n\n" in follower.received)
    await follower.leave()


def test_an_event_of_several_lines() -> None:
    assert channel.event("outcome", "a\r\nb\n") == b"event: outcome\ndata: a\ndata: b\ndata: \n\n"
