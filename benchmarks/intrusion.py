"""What does an open page cost the engines? Measured runs with a page open and charting, and without any.

usage: python -m benchmarks.intrusion [--pairs N]           (real engines; about a minute and a half a run)

One app and one pair of engines; runs alternate: open, closed, closed, open. Each is started from the page, which
then stays, or goes away while the engines warm up. The browser runs on this machine too and is part of the cost;
that of a user elsewhere is not.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from playwright.async_api import Page, expect

from benchmarks.common import ask_for, browser, folder, ratio, real_app
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run
from playground.domain.stats.rounds import order_of
from playground.domain.stats.verdicts import compare
from playground.store import History

TARGET = 0.98
STATES = ("closed", "open")
TOKENS = 48
FIELDS = {"requests": "1", "max_rounds": "6", "width": "0.25"}
RUN_S = 900
# Between two looks at a run: reading costs, too, and must cost both states the same.
LOOK_S = 5.0


async def main(pairs: int) -> None:
    with folder() as place, real_app(place) as (_, url):
        async with browser() as chromium:
            page = await chromium.new_page(viewport={"width": 1440, "height": 1000})
            history = History(place / "history.db")
            # Engines start, and whatever is slow at first.
            await one_run(page, url, history, leave=False)
            runs_by_pair: list[dict[str, Run]] = []
            for number in range(pairs):
                runs = {}
                for state in (STATES[index] for index in order_of(number, 2)):
                    runs[state] = await one_run(page, url, history, leave=state == "closed")
                runs_by_pair.append(runs)
                lines = (f"{state} {speeds(run)}" for state, run in runs.items())
                print(f"pair {number + 1}: " + ", ".join(lines), flush=True)
    for index, side in enumerate(runs_by_pair[0]["open"].sides):
        values = [{state: speed(run, index) for state, run in runs.items()} for runs in runs_by_pair]
        verdict = compare(values, "open", "closed", "throughput")
        print(
            f"{side.label}: tokens/s with the page open / without: {ratio(verdict)}, at least {TARGET:g} wanted "
            "on a machine with a free core"
        )


async def one_run(page: Page, url: str, history: History, *, leave: bool) -> Run:
    await page.goto(url)
    await expect(page.locator("#race")).to_be_enabled(timeout=60_000)
    await ask_for(page, TOKENS)
    await page.get_by_text("Measurement: prompts, load, limits, when it ends").click()
    for name, value in FIELDS.items():
        field = page.locator(f"#measure-{name} :is(input, textarea)")
        await field.fill(value)
        await field.press("Tab")
    await page.locator("#measure-check_outputs input").uncheck()
    known = {summary.id for summary in history.summaries()}
    await page.locator("#measure").click()
    async with asyncio.timeout(RUN_S):
        # Another process writes it: nothing here could be awaited instead.
        while not (new := [summary for summary in history.summaries() if summary.id not in known]):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        if leave:
            await page.goto("about:blank")
        while (run := history.get(new[0].id)) is None or run.status == "running":  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
    if run.status != "done":
        raise SystemExit(f"the run ended as {run.status}: {run.problem}")
    return run


def speed(run: Run, index: int) -> float | None:
    return side_figures(run.sides[index]).output_tokens_per_s


def speeds(run: Run) -> Sequence[str]:
    return [f"{speed(run, index) or 0:.2f} tokens/s" for index in range(len(run.sides))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=6)
    asyncio.run(main(parser.parse_args().pairs))
