"""SIGTERM in every state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.common import real_app, stand_in
from benchmarks.trials import Outcome, Trial, family, terminated, until
from benchmarks.visitor import Visitor

from .states import engine_that, hub, in_time, said, streaming


def ended_while(
    reach: Callable[[Visitor, Path], Awaitable[None]],
    runtime: Callable[[Path], dict[str, str]] = lambda place: stand_in(place, rate=20),
    *,
    slow_hub: bool = False,
) -> Callable[[Path], Awaitable[Outcome]]:
    """SIGTERM once the visitor has brought the app into a state."""

    async def run(place: Path) -> Outcome:
        async with hub("HTTP/1.1 200 OK\r\n") as address:
            more = runtime(place) | ({"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"} if slow_hub else {})
            with real_app(place, more) as (process, url):
                async with Visitor(url) as visitor:
                    await visitor.arrive()
                    await reach(visitor, place)
                    pids = family(process.pid)
                    took, left = await terminated(process, pids)
                if took is None:
                    process.kill()
        return Outcome(in_time(took) and not left, f"{said(took)}, {len(left)} of {len(pids)} processes left")

    return run


async def idle(visitor: Visitor, place: Path) -> None:
    await visitor.press("check-first")


async def asking_the_runtime(visitor: Visitor, place: Path) -> None:
    await visitor.send("race")
    await asyncio.sleep(2)


async def fetching(visitor: Visitor, place: Path) -> None:
    visitor.fill(side0_target="somebody/model", side1_target="somebody/model")
    await visitor.send("race")
    await asyncio.sleep(3)


async def starting(visitor: Visitor, place: Path) -> None:
    await visitor.press("race")
    await until(lambda: any((place / "state").glob("*.log")), within_s=20)
    await asyncio.sleep(0.5)


async def measuring(visitor: Visitor, place: Path) -> None:
    await visitor.press("measure")
    await asyncio.sleep(4)


async def in_line(visitor: Visitor, place: Path) -> None:
    await streaming(visitor, place)
    for _ in range(3):
        await visitor.send("wait")
    await asyncio.sleep(0.5)


ENDS = (
    Trial("end-idle", "5 s", ended_while(idle)),
    Trial(
        "end-asking-runtime",
        "5 s",
        ended_while(asking_the_runtime, lambda place: engine_that(place, probe="sleep 120;")),
    ),
    Trial("end-fetching", "5 s", ended_while(fetching, slow_hub=True)),
    Trial(
        "end-starting",
        "5 s",
        ended_while(starting, lambda place: engine_that(place, engine="trap '' TERM; sleep 120;")),
    ),
    Trial("end-streaming", "5 s", ended_while(streaming)),
    Trial("end-measuring", "5 s", ended_while(measuring)),
    Trial("end-in-line", "5 s", ended_while(in_line)),
)
