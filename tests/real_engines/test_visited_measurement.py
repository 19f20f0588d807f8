"""A measurement in a real browser, on real engines. The last of these tests: each side gets all cores in turn,
which engines of no other test have. One side drafts with a model as poor as can be.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect
from support.browser import START_MS, fill, opened, overflows, shot, unfold
from support.real import DRAFT_K, embedded_model, shortened, shuffled_copy, with_speculation
from support.stored_runs import saved

from playground.domain.record.metrics import side_figures
from playground.presets import Preset
from playground.runs.host import Host

pytestmark = [pytest.mark.engine, pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


async def table_of(page: Page) -> list[str]:
    await unfold(page, "all-figures")
    return await page.locator(".all-figures .figures:visible td").all_text_contents()


async def measures(page: Page) -> list[str]:
    """A small measurement, to its sentence. Returns the figures shown."""
    await page.get_by_text("Measurement: prompts").click()
    requests, rounds = (
        page.locator(f"#measure-{name} :is(input, textarea)") for name in ("requests", "max_rounds")
    )
    # A load without an end: said at once.
    await fill(requests, "")
    await page.locator("#measure").click()
    await expect(page.locator("#message .alert")).to_contain_text("how many requests")
    await fill(requests, "1")
    await fill(rounds, "6")
    await shot(page, "05-measurement-form")
    await page.locator("#measure").click()

    # Sides take turns; after each round there is a sentence, and a point more in the chart.
    await expect(page.locator(".pane.serving")).to_have_count(1, timeout=START_MS)
    await expect(page.locator("#race")).to_be_disabled()
    await expect(page.locator("#measure")).to_be_disabled()
    await expect(page.locator(".note").first).to_contain_text("Round 2 of at most 6", timeout=120_000)
    await expect(page.locator(".headline").first).to_contain_text("Too early to say whether draft is faster")
    await unfold(page, "all-charts")
    await expect(page.locator('[data-chart="speed_up"]:visible .points path').first).to_be_attached()
    await shot(page, "05-measuring")
    # Ten charts, painted anew after each round, take the engines' cores.
    await page.locator(".all-charts:visible > summary").first.click()
    await expect(page.locator("#measure")).to_be_enabled(timeout=300_000)
    await expect(page.locator(".headline").first).to_contain_text("6 rounds of one prompt")
    await expect(page.locator(".saved").first).to_contain_text("Saved in the history")

    # Both sides' figures in one table, over all rounds, each name with its definition; charts behind the sentence.
    figures = await table_of(page)
    distributions = 5 * 2 * 6
    # A percentile is there where there are values enough for it: of six requests only the median.
    for row in (figures[at : at + 6] for at in range(0, distributions, 6)):
        count = int(row[5].replace(",", ""))
        assert [text == "-" for text in row] == [False, False, count < 10, count < 20, count < 100, False], row
    assert figures[5] == figures[11] == "6"
    await page.locator(".all-figures").get_by_role("button", name="ITL").press("Enter")
    await expect(page.locator(".definition:popover-open")).to_contain_text("Inter-token latency")
    await page.keyboard.press("Escape")
    await expect(page.locator(".pane .reply").first).to_be_visible()
    await unfold(page, "all-charts")
    for chart in ("by_round", "ttft_share", "tpot_share", "e2el_share", "sampled_speed", "kv_cache"):
        await expect(page.locator(f'[data-chart="{chart}"]:visible .scatterlayer .trace')).to_have_count(2)
    await expect(page.locator('[data-chart="per_position"]:visible .barlayer .point')).to_have_count(DRAFT_K)
    assert not await overflows(page)
    await shot(page, "05-measured")
    return figures


async def test_a_measurement(
    host: Host,
    preset: Preset,
    page_url: str,
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("playground.runs.measured.WARM_UP_PASSES", 2)
    poor = shuffled_copy(await embedded_model(), tmp_path / "shuffled")
    run = host.comparison(with_speculation(preset, poor), shortened(preset, 16)).run
    run.status = "done"
    saved(host.history, run)
    errors: list[str] = []
    page = await opened(browser, f"{page_url}/?run={run.id}&reuse=1", errors)
    measured = await measures(page)

    # A poor draft is accepted almost never, and changes no answer.
    assert host.latest is not None
    off, draft = host.latest.run.sides
    acceptance = side_figures(draft).acceptance_rate
    assert acceptance is not None
    assert acceptance < 0.1
    assert [trace.token_ids for trace in draft.requests] == [trace.token_ids for trace in off.requests]

    # The history shows exactly what was seen.
    await page.get_by_role("tab", name="History").click()
    await page.locator("#runs tbody tr").first.click()
    await expect(page.locator(".headline:visible")).to_contain_text("rounds of one prompt")
    assert await table_of(page) == measured
    await unfold(page, "all-charts")
    await expect(page.locator('[data-chart="by_round"]:visible .scatterlayer .trace')).to_have_count(2)
    await shot(page, "06-history-measured")

    assert errors == []
