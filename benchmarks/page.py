"""From a token's arrival to its paint, in Chromium: two panes at 200 tokens/s each, up to 2,000 tokens, charts on.

usage: python -m benchmarks.page [--rate 200] [--tokens 2000]

Each token of the stand-in engines carries the wall-clock time at which it was written to the socket. The page's
own clock is read in the frame after the token was put in (animation frame, then a task: it has been painted).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics

from playwright.async_api import expect

from benchmarks.common import app, ask_for, browser, folder, verdict

OBSERVE = """() => {
  window.lags = [];
  new MutationObserver((changes) => {
    const seen = [];
    for (const change of changes) for (const node of change.addedNodes) {
      if (!node.classList?.contains('token')) continue;
      for (const mark of node.textContent.matchAll(/(\\d+)@(\\d+)/g))
        seen.push([Number(mark[1]), Number(mark[2])]);
    }
    if (!seen.length) return;
    requestAnimationFrame(() => setTimeout(() => {
      const now = performance.timeOrigin + performance.now();
      for (const [sequence, at] of seen) window.lags.push([sequence, now - at]);
    }));
  }).observe(document.body, {childList: true, subtree: true});
}"""
MEDIAN_MS, P95_MS = 50, 80


async def main(rate: int, tokens: int) -> None:
    with folder() as place, app(place, rate=rate) as (_, url):
        async with browser() as chromium:
            page = await chromium.new_page(viewport={"width": 1440, "height": 1000})
            await page.goto(url)
            await expect(page.locator("#race")).to_be_visible(timeout=60_000)
            await ask_for(page, tokens)
            # The first run loads the drawing library; the second is measured.
            await page.evaluate(OBSERVE)
            for _ in range(2):
                await page.evaluate("window.lags.length = 0")
                await page.locator("#race").click()
                await expect(page.locator("#race")).to_be_disabled(timeout=30_000)
                await expect(page.locator("#race")).to_be_enabled(timeout=120_000)
            lags = await page.evaluate("window.lags")
    # The last paint puts everything in again: the first time a token was seen counts.
    panes = 2
    first = [lag for _, lag in lags[: tokens * panes]]
    cuts = statistics.quantiles(first, n=100, method="inclusive")
    print(f"{len(first)} tokens painted in {panes} panes of up to {tokens} tokens at {rate} tokens/s each")
    print(
        f"arrival to paint, ms: median {cuts[49]:.1f}, p90 {cuts[89]:.1f}, p95 {cuts[94]:.1f}, p99 {cuts[98]:.1f}"
    )
    late = [lag for sequence, lag in lags[: tokens * panes] if sequence > tokens * 0.9]
    print(f"the last tenth of the answer alone: median {statistics.median(late):.1f}")
    print(verdict("median ms", cuts[49], MEDIAN_MS))
    print(verdict("p95 ms", cuts[94], P95_MS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=2000)
    given = parser.parse_args()
    asyncio.run(main(given.rate, given.tokens))
