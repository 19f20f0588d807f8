"""The gallery and what it opens: a preset, the last result of this machine, a recording that plays."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import pytest
from playwright.async_api import Browser, Page, expect
from support.browser import choose, opened, overflows, page_of
from support.measured_run import measured_run
from support.stored_runs import saved

from playground import presets
from playground.engine import devices
from playground.engine.devices import Gpu, Machine
from playground.engine.kinds.table import KINDS
from playground.i18n import Locale, say
from playground.report import recordings
from playground.runs.host import Host
from playground.ui.gallery import offers

CPU = Machine("AMD EPYC", (0, 1), False, 24 * 2**30, ())
H200 = replace(CPU, gpus=(Gpu(0, "NVIDIA H200", 150 * 2**30, 150 * 2**30),))


def titles(section: str) -> list[str]:
    return re.findall(r'class="title" href="\?preset=([^"]+)"', section)


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_everything_is_offered_and_what_can_not_run_comes_last(locale: Locale) -> None:
    on_cpu = offers.listed(CPU, {}, locale)
    able, unable = on_cpu.split(say("gallery.not_here", locale))
    assert sorted(titles(able) + titles(unable)) == sorted(presets.names())
    assert titles(able)[0] == presets.EMBEDDED
    assert all(presets.says_gpu(name) for name in titles(unable))
    assert not any(presets.says_gpu(name) for name in titles(able))
    # A GPU preset that names a recording offers it, greyed or not; each recording is offered somewhere.
    assert "recording=qwen2.5-7b-shaped.race" in unable
    on_gpu = offers.listed(H200, {}, locale)
    assert say("gallery.not_here", locale) not in on_gpu
    for name in recordings.names():
        assert f"recording={name}" in on_cpu
        assert f"recording={name}" in on_gpu


def test_a_host_without_vllm_offers_its_recordings_and_says_why() -> None:
    listed, unable = offers.listed(CPU, {}, "en", vllm=False).split(say("gallery.not_here"))
    assert not titles(listed)
    assert sorted(titles(unable)) == sorted(presets.names())
    assert all(f"recording={name}" in listed for name in recordings.names())
    for machine in (CPU, H200):
        html = offers.chosen(presets.load(presets.EMBEDDED), machine, "en", here=True, vllm=False)
        assert escape(say("runtime.watch_only")) in html
        assert 'class="watch first"' in html


@pytest.mark.parametrize(
    ("machine", "name", "here", "first", "warned"),
    [
        (CPU, presets.EMBEDDED, False, True, False),
        (CPU, presets.EMBEDDED, True, False, False),
        (H200, presets.EMBEDDED, False, False, False),
        (CPU, "k-1-to-10", True, True, True),
        (H200, "k-1-to-10", False, False, False),
    ],
)
def test_who_can_run_nothing_is_offered_a_recording_first(
    machine: Machine, name: str, here: bool, first: bool, warned: bool
) -> None:
    html = offers.chosen(presets.load(name), machine, "en", here=here)
    assert ("recorded on NVIDIA H200" in html) == first
    assert (say("ui.needs_gpu_missing") in html) == warned


def test_a_preset_whose_engine_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    llama = KINDS["llama-cpp"]
    monkeypatch.setitem(KINDS, "llama-cpp", replace(llama, find=lambda: None))
    name = "vllm-vs-llama-cpp"
    able, unable = offers.listed(H200, {}, "en").split(say("gallery.not_here"))
    assert name in titles(unable)
    assert "vllm-vs-transformers" in titles(able)
    assert escape(llama.brings) in offers.chosen(presets.load(name), H200, "en", here=True)


async def close_and_choose(page: Page, name: str) -> None:
    await page.locator(".replay").get_by_role("button", name=say("replay.close")).click()
    await choose(page, name)
    prompt = presets.load(name).workload.prompt
    await expect(page.locator("#asked-prompt textarea")).to_have_value(prompt.strip())


@pytest.mark.browser
async def test_a_visitor_without_a_model_watches_and_chooses(host: Host, browser: Browser) -> None:
    """No engine runs. The link of what is watched opens the same for somebody else, and what was measured here is
    said beside its preset."""
    run = measured_run()
    run.preset, run.machine = "smollm2-draft", devices.machine().as_record()
    saved(host.history, run)
    host.history.summarise()
    errors: list[str] = []
    async with page_of(host) as url:
        page = await opened(browser, url, errors)
        await page.locator(".chosen .watch").click()
        player = page.locator(".replay:visible")
        await expect(player).to_contain_text("Recorded on NVIDIA H200, 2026-11-29, vLLM 0.26.0.")
        await expect(page.locator("#race")).to_be_hidden()
        await expect(page.locator(".pane:visible")).to_have_count(2)
        await player.get_by_role("button", name=say("replay.end")).click()
        headline = page.locator(".headline:visible").first
        await expect(headline).to_contain_text("5.05")
        shown = await page.locator(".answer:visible").all_text_contents()
        await player.get_by_role("button", name="4×").click()
        await expect(headline).not_to_contain_text("5.05")
        await expect(headline).to_contain_text("5.05")
        assert await page.locator(".answer:visible").all_text_contents() == shown
        await expect(page.locator(".lead-chart:visible polyline").first).to_be_attached()
        # What was measured of the same preset is one click away.
        await player.get_by_role("button", name=say("gallery.measured")).click()
        await expect(headline).to_contain_text("1.66x as fast")
        link = page.url
        assert link.endswith("?recording=smollm2-ngram.measured")
        await close_and_choose(page, "smollm2-draft")
        await expect(page.locator("#race")).to_be_visible()
        await expect(page.locator(".pane:visible")).to_have_count(0)
        assert page.url.endswith("?preset=smollm2-draft")
        await page.locator(".choose").click()
        await page.locator(".gallery .figure", has_text=say("gallery.here")).click()
        await expect(page.locator("#history-panes .pane").first).to_be_visible()
        phone = await opened(browser, f"{link}&present=1", errors, width=390, locale="zh-CN")
        await expect(phone.locator(".replay:visible")).to_contain_text("录制于 NVIDIA H200")
        await phone.keyboard.press("Escape")
        await phone.locator(".replay").get_by_role("button", name=say("replay.close", "zh-CN")).click()
        await phone.locator(".choose").click()
        await expect(phone.locator(".gallery li").first).to_be_visible()
        assert not await overflows(phone)
        await page.context.close()
        await phone.context.close()
    assert errors == []
