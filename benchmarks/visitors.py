"""Many visitors follow one race, others press small buttons, and its owner stops it.

usage: python -m benchmarks.visitors [--visitors 100] [--seconds 20]

Each visitor opens the page, keeps its heartbeat open as a browser does, and follows the race. Each token of the
stand-in engines carries the wall-clock time at which it was written to the socket: a visitor's lag is the age of
the newest token when it arrives. The probe is the smallest request that the page answers. The visitors are another
process, and all of it shares this machine's processors.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import statistics
import sys
import time
from typing import Any

import httpx

from benchmarks.common import ROOT, app, folder, verdict
from benchmarks.visitor import API, Visitor

RATE = 50
# Requests of others, while the race is stopped.
OTHERS = 80
TOKEN = re.compile(rb"\d+@(\d+) ")
LIVE, PROBE_P99_MS, STOP_S, PAGE_S = 100, 200, 1, 3


class Follower:
    """One visitor who follows the race, by the bare socket: an HTTP client would take more time than the page."""

    def __init__(self, url: str, run_id: str, session: str) -> None:
        self._url = httpx.URL(url)
        self._run_id = run_id
        self._session = session
        self.page_s = 0.0
        self.lags_ms: list[float] = []
        self.ended = False

    async def follow(self) -> None:
        began = time.monotonic()
        page, writer = await self._get("/", connection="close")
        await page.read()
        writer.close()
        self.page_s = time.monotonic() - began
        _, heartbeat = await self._get(f"{API}/heartbeat/{self._session}")
        events, writer = await self._get(f"/live/{self._run_id}")
        while not self.ended and (block := await events.read(1 << 20)):
            if tokens := TOKEN.findall(block):
                self.lags_ms.append(time.time() * 1000 - int(tokens[-1]))
            self.ended = b"event: end" in block
        for opened in (heartbeat, writer):
            opened.close()

    async def _get(
        self, path: str, connection: str = "keep-alive"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._url.host, self._url.port)
        head = f"GET {path} HTTP/1.1\r\nHost: {self._url.netloc.decode()}\r\nConnection: {connection}\r\n\r\n"
        writer.write(head.encode())
        return reader, writer


async def follow(url: str, run_id: str, visitors: int) -> None:
    """What the visitors saw, as JSON."""
    followers = [Follower(url, run_id, f"visitor{number}") for number in range(visitors)]
    await asyncio.gather(*(follower.follow() for follower in followers))
    print(json.dumps([[item.page_s, item.lags_ms, item.ended] for item in followers]))


async def probed(url: str, stopped: asyncio.Event) -> list[float]:
    """Milliseconds of each answer to the smallest request."""
    taken = []
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        while not stopped.is_set():
            began = time.monotonic()
            (await client.get(f"{API}/app_id")).raise_for_status()
            taken.append(1000 * (time.monotonic() - began))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 0.05)
    return taken


async def pressing(visitor: Visitor) -> None:
    async with visitor:
        await visitor.press("sweep-plan")


def run_of(answer: dict[str, Any]) -> str:
    """The run that the page follows after this answer."""
    values = [value for value in answer["output"]["data"] if isinstance(value, str) and value.startswith('{"id"')]
    return str(json.loads(values[0])["id"])


async def main(visitors: int, seconds: float) -> None:
    with folder() as place, app(place, rate=RATE) as (_, url):
        async with Visitor(url) as owner:
            await owner.arrive()
            owner.fill(asked_max_tokens=8000)
            run_id = run_of(await owner.press("race"))
            command = [sys.executable, "-m", "benchmarks.visitors", "--follow", url, run_id]
            child = await asyncio.create_subprocess_exec(
                *command, "--visitors", str(visitors), cwd=ROOT, stdout=asyncio.subprocess.PIPE
            )
            pressed = [owner.again() for _ in range(OTHERS)]
            stopped = asyncio.Event()
            probe = asyncio.create_task(probed(url, stopped))
            await asyncio.sleep(seconds)
            stopped.set()
            taken = await probe
            others = [asyncio.create_task(pressing(visitor)) for visitor in pressed]
            # Until they have pressed.
            await asyncio.sleep(0.5)
            began = time.monotonic()
            await owner.press("stop")
            heard = time.monotonic() - began
            out, _ = await asyncio.wait_for(child.communicate(), timeout=60)
            await asyncio.gather(*others)
    report(json.loads(out), taken, heard, visitors)


def report(seen: list[Any], taken: list[float], heard: float, visitors: int) -> None:
    live = [lags for _, lags, ended in seen if ended and len(lags) > 1]
    lags = sorted(lag for of_one in live for lag in of_one)
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    print(f"{visitors} visitors, {len(taken)} probes, {OTHERS} requests of others at the stop")
    print(f"live: {len(live)} of {visitors}")
    if lags:
        print(f"reads of tokens, a visitor: {statistics.median(map(len, live)):.0f}")
        spread = statistics.quantiles(lags, n=100, method="inclusive")
        print(f"token to visitor, ms: median {spread[49]:.0f}, p95 {spread[94]:.0f}, p99 {spread[98]:.0f}")
    print(f"probe, ms: median {cuts[49]:.1f}, p99 {cuts[98]:.1f}, worst {max(taken):.0f}")
    print(verdict("not live", visitors - len(live), 0))
    print(verdict("probe p99 ms", cuts[98], PROBE_P99_MS))
    print(verdict("slowest page s", max(page_s for page_s, _, _ in seen), PAGE_S))
    print(verdict("stop heard s", heard, STOP_S))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--visitors", type=int, default=LIVE)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--follow", nargs=2, metavar=("URL", "RUN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow:
        address, run = options.follow
        asyncio.run(follow(address, run, options.visitors))
    else:
        asyncio.run(main(options.visitors, options.seconds))
