"""In a real browser, on stand-ins for engines: several pages follow one race, and find it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Page, expect
from support.browser import App, fill, opened

from benchmarks.common import app, folder
from playground.i18n import Locale, say

pytestmark = pytest.mark.browser
# They take longer than the pages need to open: the race ends when it is stopped.
TOKENS, RATE = 2000, 10
# Whether the sentence that answers a press was ever on the page.
NOTICE = """() => new MutationObserver(() => {
  window.noticed ||= document.querySelector('#message .waiting')?.offsetHeight > 0;
}).observe(document.body, {childList: true, subtree: true})"""


@pytest.fixture
def url() -> Iterator[str]:
    with folder() as place, app(place, rate=RATE) as (_, address):
        yield address


async def shows_tokens(page: Page, more_than: int) -> None:
    await page.wait_for_function(
        f"document.querySelector('.answer .text')?.textContent.length > {more_than}", timeout=60_000
    )


async def stopped(page: Page, locale: Locale = "en") -> None:
    await expect(page.locator(".headline:visible").first).to_contain_text(
        say("race.stopped", locale), timeout=60_000
    )
    await expect(page.locator("#race")).to_be_enabled()
    await expect(page.locator("#stop")).to_be_hidden()


async def answers(page: Page) -> list[str]:
    return [
        "".join(await answer.locator(".token").all_text_contents())
        for answer in await page.locator(".answer:visible").all()
    ]


async def test_pages_follow_one_race(url: str, browser: Browser) -> None:
    errors: list[str] = []
    first = await opened(browser, url, errors)
    await first.get_by_text("Sampling, system prompt and earlier turns").click()
    await fill(first.get_by_label("Output tokens, at most"), str(TOKENS))
    await first.evaluate(NOTICE)
    await first.locator("#race").click()
    await shows_tokens(first, 10)
    assert await first.evaluate("window.noticed"), "a press is answered at once"
    second = await opened(browser, url, errors, locale="zh-CN")
    third = await opened(browser, url, errors)
    for page in (second, third):
        await page.locator("#watch").click()
        await shows_tokens(page, 200)
        await expect(page.locator("#stop")).to_be_visible()
    # A page that lost its connection, and one that was loaded again.
    await third.context.set_offline(True)
    await second.reload()
    await shows_tokens(second, 400)
    await third.context.set_offline(False)
    # Anybody's stop ends the race for all.
    await second.locator("#stop").click()
    await asyncio.gather(stopped(first), stopped(second, "zh-CN"), stopped(third))
    shown = await answers(first)
    assert shown == await answers(second) == await answers(third)
    assert all(len(text) > 400 for text in shown)
    await expect(first.locator(".lead-chart:visible polyline").first).to_be_attached()
    # For a meeting room: answers and a chart, nothing else, until Escape.
    await first.get_by_role("button", name="Present").click()
    await expect(first.locator("#race")).to_be_hidden()
    await expect(first.locator(".lead-chart:visible polyline").first).to_be_attached()
    assert await answers(first) == shown
    assert "present=1" in first.url
    await first.keyboard.press("Escape")
    await expect(first.locator("#race")).to_be_visible()
    # The tab's panes are still there after a look elsewhere.
    await first.get_by_role("tab", name="History").click()
    await first.get_by_role("tab", name="Compare").click()
    assert await answers(first) == shown
    assert errors == []


async def test_a_sweep_is_followed(stand_in_app: App, browser: Browser) -> None:
    errors: list[str] = []
    pages = [await opened(browser, stand_in_app[1], errors) for _ in range(2)]
    for page in pages:
        await page.get_by_role("tab", name="What if").click()
    first, second = pages
    await fill(first.locator("#values-1 input"), "1,2")
    await fill(first.locator("#sweep-minutes input"), "5")
    await first.locator("#sweep-start").click()
    await expect(first.locator("#sweep-progress")).to_contain_text("of 2", timeout=60_000)
    await second.locator("#sweep-start").click()
    await second.locator("#sweep-watch").click()
    await expect(second.locator("#sweep-progress")).to_contain_text("of 2", timeout=60_000)
    await second.locator("#sweep-stop").click()
    for page in pages:
        await expect(page.locator("#sweep-start")).to_be_enabled(timeout=60_000)
        await expect(page.locator("#sweep-stop")).to_be_hidden()
        await expect(page.locator("#sweep-points tbody tr")).to_have_count(2)
        await expect(page.locator(".note:visible").first).to_contain_text(say("race.stopped"))
        await expect(page.locator("#sweep-progress .bar")).to_have_count(0)
    assert errors == []
