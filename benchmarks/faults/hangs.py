"""Work that hangs: a hub that never answers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

from benchmarks.common import real_app, stand_in
from benchmarks.trials import Outcome, Probe, Trial, until
from benchmarks.visitor import Visitor

from .states import ended, history, hub


async def six_stops(place: Path) -> Outcome:
    """Six times: a race that fetches from a slow hub, and Stop."""
    async with hub("HTTP/1.1 200 OK\r\n") as address:
        more = stand_in(place, rate=200) | {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        with real_app(place, more) as (_, url):
            async with Visitor(url) as visitor, Probe(url) as probe:
                await visitor.arrive()
                visitor.fill(side0_target="somebody/model", side1_target="somebody/model")
                for number in range(6):
                    await visitor.press("race")
                    await asyncio.sleep(1)
                    await visitor.press("stop")
                    await until(lambda n=number: ended(place, n + 1), within_s=10)
                    if number == 5:
                        worst = probe.worst_s
                statuses = [status for _, status in history(place)]
                async with Visitor(url) as other:
                    await other.arrive()
                    since = time.monotonic()
                    await other.press("check-first")
                    took = time.monotonic() - since
    seen = f"{statuses.count('stopped')} of 6 stopped; others waited {worst:.1f} s at most"
    seen += f"; then a check took {took:.1f} s"
    return Outcome(statuses.count("stopped") == 6 and worst < 3, seen)


async def thirty_checks(place: Path) -> Outcome:
    """Thirty visitors check a model that the hub never answers for; somebody else races."""
    async with hub("HTTP/1.1 200 OK\r\n") as address:
        more = stand_in(place, rate=200) | {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        with real_app(place, more) as (_, url):
            async with contextlib.AsyncExitStack() as stack:
                visitors = [await stack.enter_async_context(Visitor(url)) for _ in range(30)]
                racer = await stack.enter_async_context(Visitor(url))
                await racer.arrive()
                for visitor in visitors:
                    await visitor.arrive()
                    visitor.fill(side0_target="somebody/model", side1_target="somebody/model")
                    await visitor.send("check-first")
                await asyncio.sleep(1)
                since = time.monotonic()
                await asyncio.wait_for(racer.press("race"), 60)
                took = time.monotonic() - since
    return Outcome(took < 5, f"the race began after {took:.1f} s")


HANGS = (
    Trial("six-stops", "all stopped", six_stops),
    Trial("thirty-checks", "within 5 s", thirty_checks),
)
