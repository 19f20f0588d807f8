"""In a real browser, on stand-ins for engines: a pasted command line, errors at their fields, a failure mended."""

from __future__ import annotations

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect
from support.browser import START_MS, App, choose, fill, opened, overflows, shot

from playground.i18n import say

pytestmark = pytest.mark.browser
PASTED = (
    "vllm serve SmolLM2-135M-Instruct --speculative-model [ngram] --num-speculative-tokens 4 "
    "--max-prefill-tokens 4096 --swap-space 4 --max-num-seqs"
)


async def test_a_pasted_command_line_fills_in_a_side(stand_in_app: App, browser: Browser) -> None:
    errors: list[str] = []
    page = await opened(browser, stand_in_app[1], errors)
    await page.get_by_text("Settings of each side").click()
    await page.get_by_text("Paste a command line").first.click()
    box, notes = page.locator("#side0-pasted textarea"), page.locator("#side0-notes")
    await _drop(page, "#side0-pasted textarea", "vllm serve dropped --seed 1")
    await expect(box).to_have_value("vllm serve dropped --seed 1")
    # Something wrong first: said, and what was typed stays.
    await fill(box, f"{PASTED} many")
    await page.locator("#side0-fill").click()
    await expect(notes).to_contain_text("many")
    await expect(box).to_have_value(f"{PASTED} many")
    await fill(box, f"{PASTED} 16")
    await page.locator("#side0-fill").click()
    await expect(notes).to_contain_text("max_prefill_tokens is called max_num_batched_tokens today")
    await expect(notes).to_contain_text("swap_space no longer exists and was left out")
    await expect(page.locator("#side0-k input")).to_have_value("4")
    await expect(page.locator("#side0-method input")).to_have_value("ngram")
    await shot(page, "08-pasted")
    await page.get_by_role("tab", name="Knobs").first.click()
    await expect(page.locator("#side0-knobs [name=max_num_batched_tokens]")).to_have_value("4096")
    await expect(page.locator("#side0-knobs [name=max_num_seqs]")).to_have_value("16")
    await _an_error_at_its_field(page)
    assert not errors


async def test_knobs_are_there_whatever_was_changed_before_they_were_shown(
    stand_in_app: App,
    browser: Browser,
) -> None:
    """A preset, sides added and taken away: all of it changes forms whose knobs nobody has opened yet."""
    page = await opened(browser, stand_in_app[1], [])
    await page.get_by_text("Settings of each side").click()
    await choose(page, "batching-16-vs-64")
    await expect(page.locator("#side1-label input")).to_have_attribute("placeholder", "64 at once")
    await page.locator("#add_same_path").click()
    await expect(page.locator("#same-path-message")).to_contain_text("No side speculates")
    for button, count in (("add", 3), ("add", 4), ("remove", 3), ("add", 4)):
        await page.locator(f"#{button}_side").click()
        await expect(page.get_by_role("tab", name="Knobs")).to_have_count(count)
    for index, at_once in enumerate(("16", "64", "64", "64")):
        await page.locator(f"#side{index}-tab-knobs-button").click()
        await expect(page.locator(f"#side{index}-knobs [name=max_num_seqs]")).to_have_value(at_once)
        await expect(page.locator(f"#side{index}-knobs [name=max_model_len]")).to_have_value("4096")


async def _drop(page: Page, selector: str, text: str) -> None:
    """A text file, dropped as from the desktop."""
    data = await page.evaluate_handle(
        """(text) => {
            const data = new DataTransfer();
            data.items.add(new File([text], 'command.txt', {type: 'text/plain'}));
            return data;
        }""",
        text,
    )
    for event in ("dragover", "drop"):
        await page.dispatch_event(selector, event, {"dataTransfer": data})


async def _an_error_at_its_field(page: Page) -> None:
    """Also where it is folded away, and on another tab."""
    knob = page.locator("#side0-knobs [name=max_num_seqs]")
    await fill(knob, "0")
    # Another field of the side, and one of the other side.
    await fill(page.locator("#side0-knobs [name=block_size]"), "-1")
    await page.get_by_role("tab", name="Knobs").nth(1).click()
    await fill(page.locator("#side1-knobs [name=seed]"), "-7")
    await page.get_by_role("tab", name="Models").first.click()
    await page.get_by_text("Settings of each side").click()
    await page.locator("#race").click()
    await expect(page.locator("#message .alert")).to_have_count(3)
    await expect(page.locator("#message .alert").first).to_contain_text("max_num_seqs")
    await expect(knob).to_be_visible()
    await expect(knob).to_have_attribute("aria-invalid", "true")
    await expect(knob).to_have_value("0")
    await expect(page.locator(".field-message")).to_have_count(3)
    await expect(page.locator("label:has([name=max_num_seqs]) + .field-message")).to_contain_text("at least 1")
    await shot(page, "09-error-at-its-field")
    await page.set_viewport_size({"width": 390, "height": 844})
    assert not await overflows(page)
    await shot(page, "09-error-at-its-field-390")


async def test_a_button_mends_the_side_that_failed(stand_in_app: App, browser: Browser) -> None:
    """Both engines refuse their settings, as vLLM does, and the first to do so ends the start: a click changes its
    field, and nothing starts by itself."""
    _, url = stand_in_app
    errors: list[str] = []
    page = await opened(browser, url, errors)
    await page.get_by_text("Settings of each side").click()
    knobs = page.locator(".knobs input[name=max_model_len]")
    for side in range(2):
        await page.get_by_role("tab", name="Knobs").nth(side).click()
        await fill(knobs.nth(side), "99999")
    await fill(page.get_by_label("Prompt", exact=True), "typed elsewhere")
    await page.get_by_text("Settings of each side").click()
    await page.locator("#race").click()
    panes = page.locator(".pane:visible")
    button = panes.get_by_role("button", name="Set max_model_len to 8192").first
    await expect(button).to_be_visible(timeout=START_MS)
    await expect(page.locator("#race")).to_be_enabled()
    failed = 0 if await panes.nth(0).locator(".changes").count() else 1
    await button.click()
    await expect(page.locator("#message")).to_contain_text("Set max_model_len to 8192")
    # The form opens where the field is.
    await expect(knobs.nth(failed)).to_be_visible()
    await expect(knobs.nth(failed)).to_have_value("8192")
    await expect(knobs.nth(1 - failed)).to_have_value("99999")
    await expect(button).to_be_disabled()
    await expect(page.get_by_label("Prompt", exact=True)).to_have_value("typed elsewhere")
    await expect(page.locator("#stop")).to_be_hidden()
    await shot(page, "13-mended")

    # In the history the same is said, without a form to change.
    await page.get_by_role("tab", name="History").click()
    await page.locator("#runs tbody button").first.click()
    told = page.locator(".pane:visible .changes").first
    await expect(told).to_contain_text("Set max_model_len to 8192")
    await expect(told.get_by_role("button")).to_have_count(0)
    assert errors == []


async def test_a_click_on_a_card_opens_its_field_and_the_card_follows(stand_in_app: App, browser: Browser) -> None:
    """Two clicks and typing: another k, and the run; the label says what ran."""
    errors: list[str] = []
    page = await opened(browser, stand_in_app[1], errors)
    cards = page.locator("#side-cards section")
    await expect(cards.nth(1)).to_contain_text("n-gram, k = 5")
    await expect(page.locator("#side-cards details.fits")).to_have_count(2, timeout=60_000)
    await cards.nth(1).get_by_title("Change Draft tokens (k) of side B").click()
    await expect(page.locator("#side1-k input")).to_be_focused()
    await page.keyboard.type("3")
    await expect(cards.nth(1)).to_contain_text("n-gram, k = 3")
    await expect(page.locator("#side-cards .difference")).to_contain_text("Draft tokens (k): none | 3")
    # What starts a run is in sight wherever the form is.
    await expect(page.locator("#race")).to_be_in_viewport()
    await page.locator("#race").click()
    await expect(page.locator("#stop")).to_be_in_viewport(timeout=START_MS)
    await expect(page.locator(".pane:visible h3").nth(1)).to_have_text("n-gram, k = 3", timeout=START_MS)
    await expect(page.locator("#asked-prompt")).to_be_hidden()
    await expect(page.locator("#race")).to_be_enabled(timeout=START_MS)
    await expect(page.locator("#side1-k input")).to_be_hidden()
    assert not errors


async def test_screen_readers_and_keyboards_get_along_in_light_and_dark(
    stand_in_app: App, browser: Browser
) -> None:
    """axe-core has nothing serious to say of the first page, of a result, and of the history. Then the language is
    switched, and an address keeps it."""
    url, errors = stand_in_app[1], list[str]()
    page = await opened(browser, url, errors)
    await expect(page.locator("#side-cards .check").first).to_be_visible()
    await _accessible(page)
    await page.locator("#race").click()
    await expect(page.locator("#stop")).to_be_visible(timeout=START_MS)
    await expect(page.locator("#race")).to_be_enabled(timeout=START_MS)
    await _accessible(page)
    for theme in ("light", "dark"):
        await page.goto(f"{url}/?__theme={theme}")
        await expect(page.locator("#side-cards .check").first).to_be_visible()
        await page.get_by_role("tab", name="History").click()
        await page.locator("#runs tbody button").first.click()
        await expect(page.locator("#history-panes .pane")).to_have_count(2)
        await _accessible(page)
    address = page.url
    await page.get_by_role("button", name="简体中文").click()
    await expect(page.locator("#history-panes .headline")).to_contain_text("在这一次竞速中")
    await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    assert page.url == f"{address}&lang=zh-CN"
    await page.goto(url)
    await expect(page.locator("#race")).to_have_text(say("ui.race_button", "zh-CN"))
    await expect(page.locator("h1")).to_have_text(say("ui.title", "zh-CN"))
    assert not errors


async def _accessible(page: Page) -> None:
    rules = (await Axe().run(page)).response["violations"]
    assert [rule for rule in rules if rule["impact"] in ("serious", "critical")] == []
