"""What the page's addresses open, by their handler and in a real browser."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from playwright.async_api import Browser, expect
from support.browser import opened, page_of
from support.races import SIDES, finished, raced, streaming, workload
from support.stored_runs import run, saved

from playground import presets
from playground.i18n import say
from playground.runs.host import Host
from playground.ui.links import LONGEST, Link
from playground.ui.page import build
from playground.ui.shared.form_origin import origin

REQUEST = gr.Request(headers={"accept-language": "en"})
QUERIES: list[tuple[dict[str, str], Link]] = [
    ({}, Link()),
    ({"run": "r1"}, Link(saved="r1")),
    ({"sweep": "s1", "present": "1"}, Link(saved="s1")),
    ({"run": "r1", "reuse": "1"}, Link(saved="r1", reuse=True)),
    ({"run": "r1", "replay": "1"}, Link(saved="r1", replay=True)),
    ({"recording": "smollm2-ngram.race"}, Link(recording="smollm2-ngram.race")),
    ({"preset": "smollm2-draft"}, Link(preset="smollm2-draft")),
    ({"compare": "a, b,,c,d,e"}, Link(compared=("a", "b", "c"))),
    ({"run": "x" * 5000}, Link(saved="x" * LONGEST)),
]


@pytest.mark.parametrize(("query", "link"), QUERIES)
def test_queries(query: dict[str, str], link: Link) -> None:
    assert Link.of(query) == link


async def follow(host: Host, **query: str) -> dict[str, Any]:
    """What the page's link changes, by the components' ids or labels."""
    return await changed_by(host, "follow_link", SimpleNamespace(query=query), REQUEST)


async def changed_by(host: Host, name: str, *arguments: object) -> dict[str, Any]:
    """What the handler of that name changes, likewise."""
    [handler] = [fn.fn for fn in build(host).fns.values() if getattr(fn.fn, "__name__", "") == name]
    changed = await handler(*arguments)
    return {getattr(part, "elem_id", None) or type(part).__name__: value for part, value in changed.items()}


@pytest.mark.usefixtures("unserved")
async def test_a_preset(host: Host) -> None:
    changed = await follow(host, preset="smollm2-draft")
    assert changed["Tabs"]["selected"] == "compare"
    assert changed["asked-prompt"] == presets.load("smollm2-draft").workload.prompt
    assert "There is no preset" in (await follow(host, preset="/etc/passwd"))["link-problem"]


@pytest.mark.usefixtures("unserved")
async def test_a_recording(host: Host) -> None:
    changed = await follow(host, recording="smollm2-ngram.race", present="1")
    assert changed["Tabs"]["selected"] == "compare"
    assert '"smollm2-ngram.race"' in changed["compare-player"]
    assert changed["asked-prompt"] == presets.load("smollm2-ngram").workload.prompt
    # Of another model's sweep the form keeps what it holds.
    changed = await follow(host, recording="shaped-articles-setting.sweep")
    assert changed["Tabs"]["selected"] == "sweep"
    assert "asked-prompt" not in changed
    assert "There is no recording" in (await follow(host, recording="<b>"))["link-problem"]


@pytest.mark.usefixtures("unserved")
async def test_a_run_that_has_ended_is_opened_or_its_settings_are(host: Host) -> None:
    saved(host.history, run("r1", prompt="Why?", status="done"))
    changed = await follow(host, run="r1")
    assert changed["Tabs"]["selected"] == "history"
    assert "r1" in changed["history-panes"]
    changed = await follow(host, run="r1", replay="1")
    assert changed["Tabs"]["selected"] == "compare"
    assert changed["compare-player"] == '{"kind": "run", "name": "r1"}'
    changed = await follow(host, run="r1", reuse="1")
    assert changed["Tabs"]["selected"] == "compare"
    assert changed["asked-prompt"] == "Why?"


@pytest.mark.usefixtures("unserved")
async def test_an_unknown_id_says_so(host: Host) -> None:
    for name in ("run", "sweep"):
        problem = (await follow(host, **{name: "<b>"}))["link-problem"]
        assert "There is no run or sweep" in problem
        assert "<b>" not in problem


@pytest.mark.usefixtures("unserved")
async def test_a_run_under_way_is_followed(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(2000))
    await host.start(comparison, "a test")
    await streaming(comparison)
    arrived = await changed_by(host, "greet", origin(presets.load(presets.EMBEDDED)), REQUEST)
    assert comparison.title in arrived["message"]
    changed = await follow(host, run=comparison.id)
    assert changed["Tabs"]["selected"] == "compare"
    assert changed["asked-prompt"] == "x"
    assert changed["stop"]["visible"]
    assert changed["message"] == ""
    # Watching it does the same: what stands above the result is what ran.
    watched = await changed_by(host, "watch_run", REQUEST)
    assert watched.keys() | {"link-problem"} == changed.keys()
    assert (watched["asked-prompt"], watched["stop"]) == (changed["asked-prompt"], changed["stop"])
    # Where others are served, who did not start it can watch, but not stop it.
    alone, host.config = host.config, replace(host.config, host="0.0.0.0")
    watched = await changed_by(host, "watch_run", gr.Request(headers={}))
    assert (watched["asked-prompt"], watched["stop"]["visible"]) == ("x", False)
    host.config = alone
    # It stays on offer when something else is refused.
    [race] = [fn.fn for fn in build(host).fns.values() if getattr(fn.fn, "__name__", "") == "race"]
    controls = race.__self__._controls
    assert race.__self__._offers(busy=False)[controls.watch]["visible"]
    comparison.stop()
    await finished(comparison)


@pytest.mark.browser
@pytest.mark.usefixtures("fake_runtime")
async def test_somebody_else_opens_a_link(host: Host, browser: Browser) -> None:
    await raced(host)
    comparison = await raced(host)
    errors: list[str] = []
    async with page_of(host) as url:
        page = await opened(browser, f"{url}/?run={comparison.id}&theme=x", errors)
        await expect(page.locator("#history-panes .pane").first).to_be_visible()
        await page.get_by_text(say("kept.link")).click()
        await expect(page.get_by_text(say("kept.copied"), exact=True)).to_be_visible()
        # A reload comes back to it.
        await page.reload()
        await expect(page.locator("#history-panes .pane").first).to_be_visible()
        await page.locator("#kept").get_by_text(say("kept.replay")).click()
        await expect(page.locator(".replay:visible")).to_contain_text("vLLM")
        await expect(page.locator(".answer:visible .token").first).to_be_attached()
        assert f"?run={comparison.id}&replay=1" in page.url
        await page.goto(f"{url}/?run={comparison.id}")
        # What people add is kept, and a deletion undone.
        await page.locator("#kept button", has_text=say("kept.star")).click()
        await expect(page.locator("#runs")).to_contain_text("★")
        await page.locator("#kept button", has_text=say("kept.delete")).click()
        await expect(page.locator("#runs tbody tr")).to_have_count(1)
        await page.locator("#kept button", has_text=say("kept.undo")).click()
        await expect(page.locator("#runs tbody tr")).to_have_count(2)
        for box in await page.locator("#runs input").all():
            await box.check()
        await page.get_by_text(say("hist.compare")).click()
        await expect(page.locator("#beside table").first).to_be_visible()
        await page.reload()
        await expect(page.locator("#beside table").first).to_be_visible()
        await page.locator("#runs tbody button").first.click()
        # One click repeats it, and says whether anything has changed.
        await page.locator("#kept button", has_text=say("kept.again_race")).click()
        await expect(page.locator(".since:visible")).to_contain_text(say("beside.open"))
        await page.goto(f"{url}/?run=nowhere")
        await expect(page.locator("#link-problem")).to_contain_text("There is no run or sweep")
        await page.context.close()
    assert not errors
