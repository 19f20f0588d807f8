"""A race in a real browser, on real engines: preset, start, stream, charts, history, reopen.

Screenshots are left in build/screenshots.
"""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect
from support.browser import START_MS, choose, fill, opened, overflows, shot, unfold

from playground import presets

pytestmark = [pytest.mark.engine, pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


async def answer_of(page: Page, index: int) -> str:
    pane = page.locator(".pane:visible").nth(index).locator(".answer")
    return "".join(await pane.locator(".token").all_text_contents())


async def drafted_of(page: Page, index: int) -> int:
    """Characters: neighbours share an element, and how many do depends on how busy the machine is."""
    return len("".join(await page.locator(".pane:visible").nth(index).locator(".draft.token").all_text_contents()))


async def test_a_race(page_url: str, browser: Browser) -> None:
    url = page_url
    errors: list[str] = []
    page = await opened(browser, url, errors)
    await shot(page, "01-empty")

    # Pick a preset and come back: the form follows.
    await choose(page, "smollm2-draft")
    await expect(page.get_by_label("Prompt", exact=True)).to_have_value(
        "Explain in a few sentences why the sky is blue."
    )
    await choose(page, "smollm2-ngram")
    await expect(page.get_by_label("Prompt", exact=True)).to_have_value(
        presets.load("smollm2-ngram").workload.prompt
    )

    # A setting that can't be: said at once, nothing starts.
    await page.get_by_text("Sampling, system prompt and earlier turns").click()
    await fill(page.get_by_label("Temperature"), "9")
    await page.locator("#race").click()
    await expect(page.locator("#message .alert")).to_contain_text("Temperature = 9")
    await shot(page, "02-bad-input")
    await fill(page.get_by_label("Temperature"), "0")

    # One button: stages, then tokens on both sides.
    await page.locator("#race").click()
    await expect(page.locator(".pane .stage").first).to_contain_text(" s", timeout=START_MS)
    await shot(page, "03-starting")

    # A second visitor sees who holds the engines, and may watch.
    other = await opened(browser, url, errors)
    await other.locator("#race").click()
    await expect(other.locator("#message .alert")).to_contain_text("Speculation off / n-gram")
    await expect(other.locator("#wait")).to_be_visible()
    await other.locator("#watch").click()
    await expect(other.locator(".pane")).to_have_count(2)

    for index in (0, 1):
        await expect(page.locator(".pane").nth(index).locator(".token").first).to_be_visible(timeout=START_MS)
    await shot(page, "04-streaming")
    await expect(page.locator(".headline").first).to_contain_text("in this one race", timeout=120_000)
    await expect(other.locator(".headline").first).to_contain_text("in this one race", timeout=30_000)

    # Both answers, drafts coloured on the speculating side only, figures under each, charts drawn.
    answers = [await answer_of(page, index) for index in (0, 1)]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 200
    assert [await answer_of(other, index) for index in (0, 1)] == answers
    assert await drafted_of(page, 0) == 0
    assert await drafted_of(page, 1) > 50
    facts = await page.locator(".pane").nth(1).locator(".facts dd").all_text_contents()
    assert "-" not in facts
    await unfold(page, "all-charts")
    await expect(page.locator("[data-chart]:visible .main-svg").first).to_be_visible(timeout=30_000)
    for chart in ("speed", "cumulative"):
        await expect(page.locator(f'[data-chart="{chart}"]:visible .scatterlayer .trace')).to_have_count(2)
    await expect(page.locator('[data-chart="per_position"]:visible .barlayer .point')).to_have_count(5)
    assert not await overflows(page)
    # A name tells what it means.
    await page.locator(".pane").nth(1).get_by_role("button", name="acceptance length").click()
    await expect(page.locator(".definition:popover-open")).to_contain_text("accepted draft tokens / drafts")
    await shot(page, "05-finished")
    await page.keyboard.press("Escape")
    await expect(page.locator(".definition:popover-open")).to_have_count(0)

    # A phone, the dark theme, Chinese.
    phone = await opened(browser, f"{url}/?__theme=dark", errors, width=390, locale="zh-CN")
    await expect(phone.locator("#race")).to_contain_text("竞速")
    assert not await overflows(phone)
    # The engines are warm: this race, a long one, starts at once. Stop it in the middle.
    await phone.get_by_text("采样参数、系统提示与先前对话").click()
    await fill(phone.get_by_label("最多输出 token"), "1500")
    await phone.locator("#race").click()
    await expect(phone.locator(".pane").first.locator(".token").first).to_be_visible(timeout=60_000)
    await shot(phone, "07-phone-dark-chinese")
    await phone.locator("#stop").click()
    await expect(phone.locator(".headline").first).to_contain_text("已停止", timeout=30_000)

    # The history has both, and shows exactly what was seen.
    await page.get_by_role("tab", name="History").click()
    await expect(page.locator("#runs tbody tr")).to_have_count(2)
    await page.locator("#runs tbody tr").last.click()
    await expect(page.locator(".headline:visible")).to_contain_text("in this one race")
    assert [await answer_of(page, index) for index in (0, 1)] == answers
    assert await page.locator(".pane:visible").nth(1).locator(".facts dd").all_text_contents() == facts
    await expect(page.locator(".lead-chart:visible polyline")).to_have_count(2)
    await page.locator(".pane:visible .deploy summary").nth(1).click()
    await expect(page.locator(".pane:visible .deploy code:visible")).to_have_count(5)
    await page.locator(".pane:visible .deploy").nth(1).get_by_role("button", name="vllm serve").click()
    await expect(page.get_by_text("Copied", exact=True)).to_have_count(1)
    await shot(page, "06-history")
    await page.get_by_label("Text", exact=True).fill("no such words")
    await page.get_by_label("Text", exact=True).press("Enter")
    await expect(page.get_by_text("No run matches this filter.")).to_be_visible()

    assert errors == []
