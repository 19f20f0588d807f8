"""The What-if tab and stored sweeps in a real browser. No engine starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from support.browser import choose as choose_preset
from support.browser import fill, opened, overflows, unfold
from support.sweep_run import OUT_OF_MEMORY, made_sweep, save

from benchmarks.common import folder, real_app, stand_in
from playground import presets
from playground.i18n import say, say_message
from playground.store import History

pytestmark = pytest.mark.browser
WITHOUT_SWEEP = "prefix-caching-on-vs-off"


@pytest.fixture
def url() -> Iterator[str]:
    """A playground whose history holds two sweeps: one over k, stopped, and a map."""
    with folder() as place:
        history = History(place / "history.db")
        save(history, made_sweep("k=1..4", failed=(2,), left=(3,)))
        save(history, made_sweep("concurrency=1,16,32", "quick.k=1,8", sweep_id="20261130-100000-5eed"))
        with real_app(place, stand_in(place, rate=200)) as (_, address):
            yield address


async def choose(box: Locator, name: str, group: str) -> None:
    """One of a list's names; what is typed narrows it."""
    await box.locator("input").fill(name)
    # The list that was open before may still be closing.
    listed = box.page.locator(f"#{await box.locator('input').get_attribute('aria-controls')}")
    await listed.get_by_role("option", name=f"{name} · {group}", exact=True).click()


async def test_the_tab_and_stored_sweeps(url: str, browser: Browser) -> None:
    errors: list[str] = []
    page = await opened(browser, url, errors)
    await plans(page)
    await changes(page)
    await opens(page)
    phone = await opened(browser, f"{url}/?__theme=dark", errors, width=390, locale="zh-CN")
    await phone.get_by_role("tab", name="假设分析").click()
    await expect(phone.locator("#sweep-base")).to_contain_text("smollm2-ngram")
    assert not await overflows(phone)
    await lists(phone)
    assert errors == []


async def plans(page: Page) -> None:
    """What is wrong is said where it is wrong, and a plan before anything starts."""
    await page.get_by_role("tab", name="What if").click()
    await expect(page.locator("#sweep-base")).to_contain_text("Speculation off | n-gram, k = 5")
    # The stopped one can go on.
    await expect(page.locator("#sweep-go-on")).to_be_visible()
    first, second = page.locator("#knob-message-1"), page.locator("#knob-message-2")
    await fill(page.locator("#knob-1 input"), "nonsense")
    await page.locator("#sweep-start").click()
    await expect(first).to_contain_text("nonsense")
    await expect(second).to_be_hidden()
    # No file of the host can be read by naming it.
    await choose(page.locator("#knob-1"), "prompts", "workload")
    await fill(page.locator("#values-1 input"), "/etc/passwd")
    await page.locator("#sweep-start").click()
    await expect(first).to_contain_text("built-in sets")
    await choose(page.locator("#knob-1"), "k", "speculation")
    await fill(page.locator("#values-1 input"), "1,2,3,5,8")
    await choose(page.locator("#knob-2"), "concurrency", "workload")
    await fill(page.locator("#values-2 input"), "8..1")
    await page.locator("#sweep-plan").click()
    await expect(second).to_contain_text("8..1")
    await expect(first).to_be_hidden()
    await fill(page.locator("#values-2 input"), "1,4")
    await page.locator("#sweep-plan").click()
    # Asking the runtime what device it has means to start it.
    await expect(page.locator("#sweep-told")).to_contain_text("10 points, 6 engine starts", timeout=60_000)
    await page.locator("#sweep-told summary").click()
    await expect(page.locator("#sweep-told li")).to_have_count(10)
    await expect(page.locator("#sweep-told li").first).to_have_text("k = 1, concurrency = 1")
    await expect(second).to_be_hidden()
    # It stays while one looks around, and goes with what it was about.
    await page.get_by_role("tab", name="History").click()
    await page.get_by_role("tab", name="What if").click()
    await expect(page.locator("#sweep-told li")).to_have_count(10)
    await fill(page.locator("#values-2 input"), "1,8")
    await expect(page.locator("#sweep-told li")).to_have_count(0)


async def changes(page: Page) -> None:
    """What "Check first" said goes when a field changes; a preset without a sweep empties the knobs."""
    await page.get_by_role("tab", name="Compare").click()
    checked = page.locator("#preflight section")
    await page.get_by_text("Settings of each side").click()
    await page.locator("#check-first").click()
    await expect(checked).to_have_count(2, timeout=60_000)
    await fill(page.locator("#side1-k input"), "3")
    await expect(checked).to_have_count(0)
    await choose_preset(page, WITHOUT_SWEEP)
    label = presets.load(WITHOUT_SWEEP).sides[0].label
    await expect(page.locator("#side0-label input")).to_have_attribute("placeholder", label)
    await page.get_by_role("tab", name="What if").click()
    await expect(page.locator("#sweep-base")).to_contain_text(WITHOUT_SWEEP)
    for field in ("#knob-1", "#values-1", "#knob-2", "#values-2"):
        await expect(page.locator(f"{field} input")).to_have_value("")


async def lists(phone: Page) -> None:
    """On a phone each line tells what was varied and how it ended; a failed point takes no more lines than two."""
    await phone.get_by_role("tab", name="历史").click()
    line = phone.locator("#runs tbody tr").last
    for text in ("k (4)", say("race.stopped", "zh-CN")):
        await expect(line.locator("td:visible").filter(has_text=text)).to_have_count(1)
    await line.click()
    row = phone.locator("#history-points tbody tr").nth(2)
    box = await row.bounding_box()
    assert box is not None
    assert box["height"] < 80
    assert not await overflows(phone)


async def opens(page: Page) -> None:
    """A sweep of the history: sentences, table, charts; a point leads to its run."""
    await page.get_by_role("tab", name="History").click()
    await expect(page.locator("#runs tbody tr")).to_have_count(2)
    await page.locator("#runs tbody tr").last.click()
    note = page.locator(".folds:visible").first
    await expect(page.locator(".lead-chart:visible polyline").first).to_be_attached()
    await unfold(page, "all-charts")
    await page.locator(".chart-grid .js-plotly-plot:visible").first.hover()
    async with page.expect_download() as saved:
        await page.locator(".modebar-btn[data-title='Save as SVG']:visible").first.click()
    file = await (await saved.value).path()
    assert "<svg" in await asyncio.to_thread(file.read_text)
    await expect(note).to_contain_text(f"k = 3 failed: {say_message(OUT_OF_MEMORY)}")
    rows = page.locator("#history-points tbody tr")
    await expect(rows).to_have_count(4)
    await expect(page.locator('[data-chart="speed_up"]:visible .scatterlayer .trace').first).to_be_attached()
    await expect(page.locator(".pane:visible")).to_have_count(0)
    await rows.first.click()
    await expect(page.locator(".pane:visible")).to_have_count(2)
    await expect(page.locator("#history-panes .headline")).to_contain_text("quick is 1.69x as fast as plain")
    # The second point in the chart: k = 2.
    await page.locator('[data-chart="objective"]:visible').scroll_into_view_if_needed()
    point = page.locator('[data-chart="objective"]:visible .scatterlayer .trace').nth(1).locator(".point").nth(1)
    box = await point.bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await expect(page.locator("#history-panes .headline")).to_contain_text("quick is 2.18x as fast as plain")
    # A map takes their place; the run that was open is closed.
    await page.locator("#runs tbody tr").first.click()
    await expect(page.locator('[data-chart="speed_up_1"]:visible .heatmaplayer')).to_be_attached()
    await expect(page.locator(".pane:visible")).to_have_count(0)
    await expect(page.locator(".recommended:visible").first).to_contain_text("depends on how many requests")
    assert not await overflows(page)
