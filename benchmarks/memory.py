"""The app without engines: memory over many comparisons, and how soon the first page is usable.

usage: python -m benchmarks.memory [--comparisons 100] [--loads 8]

Both are set against a trivial gradio page with plotly and pandas imported (`trivial_page.py`), in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time

import psutil
from playwright.async_api import Browser, expect

from benchmarks.common import app, ask_for, browser, folder, free_port, served, spread, verdict

MEMORY_RATIO, PAGE_RATIO = 1.5, 1.3
FLAT_RATIO = 1.05
TOKENS = 64


def resident_mib(pid: int) -> float:
    """Of the app's own process: engines, guards and drivers are others."""
    return psutil.Process(pid).memory_info().rss / 1024**2


async def usable(chromium: Browser, url: str) -> float:
    """Seconds from navigation until the button can be pressed, in a fresh visitor's browser context."""
    context = await chromium.new_context()
    page = await context.new_page()
    began = time.monotonic()
    await page.goto(url)
    await page.locator("#race").click(trial=True, timeout=60_000)
    took = time.monotonic() - began
    await context.close()
    return took


async def compare_many(chromium: Browser, url: str, pid: int, count: int) -> list[float]:
    """Resident MiB after each comparison, all from one page."""
    page = await chromium.new_page()
    await page.goto(url)
    await ask_for(page, TOKENS)
    memory = []
    for number in range(count):
        await page.locator("#race").click()
        await expect(page.locator("#race")).to_be_disabled(timeout=30_000)
        await expect(page.locator("#race")).to_be_enabled(timeout=60_000)
        memory.append(resident_mib(pid))
        if (number + 1) % 20 == 0:
            print(f"after {number + 1} comparisons: {memory[-1]:.0f} MiB", flush=True)
    await page.close()
    return memory


async def main(comparisons: int, loads: int) -> None:
    port = free_port()
    trivial_command = [sys.executable, "-m", "benchmarks.trivial_page", str(port)]
    with (
        folder() as place,
        app(place, rate=1000) as (process, url),
        served(trivial_command, dict(os.environ), port) as trivial,
    ):
        async with browser() as chromium:
            pages = {"trivial": f"http://127.0.0.1:{port}", "playground": url}
            times: dict[str, list[float]] = {name: [] for name in pages}
            for number in range(loads + 1):
                for name in pages if number % 2 else reversed(pages):
                    took = await usable(chromium, pages[name])
                    if number:
                        times[name].append(took)
            before, base = resident_mib(process.pid), resident_mib(trivial.pid)
            memory = await compare_many(chromium, url, process.pid, comparisons)
    print(f"\nfirst page usable, s: playground {spread(times['playground'])}, trivial {spread(times['trivial'])}")
    ratios = [a / b for a, b in zip(times["playground"], times["trivial"], strict=True)]
    print(verdict("median ratio by pair", statistics.median(ratios), PAGE_RATIO))
    tenth = max(comparisons // 10, 1)
    early, late = statistics.median(memory[tenth : 2 * tenth]), statistics.median(memory[-tenth:])
    print(f"resident MiB: playground {before:.0f} before, {memory[-1]:.0f} at the end; trivial page {base:.0f}")
    print(verdict("late over early comparisons", late / early, FLAT_RATIO))
    print(verdict("playground over trivial page", memory[-1] / base, MEMORY_RATIO))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--loads", type=int, default=8)
    given = parser.parse_args()
    asyncio.run(main(given.comparisons, given.loads))
