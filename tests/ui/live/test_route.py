"""`GET /live/ID`: a run under way, one that has ended meanwhile, and one that nobody knows."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr
import httpx
import pytest
from starlette.applications import Starlette
from support.races import SIDES, finished, raced, streaming, workload
from support.sweep_run import made_sweep, save

from playground.i18n import say
from playground.runs.host import Host
from playground.ui.compare import controls
from playground.ui.live.route import routes


@pytest.fixture
async def client(host: Host) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Starlette(routes=routes(host)))
    return httpx.AsyncClient(transport=transport, base_url="http://page", timeout=60)


async def followed(client: httpx.AsyncClient, record_id: str, language: str = "en") -> list[tuple[str, str]]:
    """The events, until the end."""
    answer = await client.get(f"/live/{record_id}", headers={"accept-language": language})
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = [block.split("\n") for block in answer.text.split("\n\n") if block.startswith("event:")]
    return [
        (first.removeprefix("event: "), "\n".join(line.removeprefix("data: ") for line in rest))
        for first, *rest in blocks
    ]


def answer_in(events: list[tuple[str, str]]) -> tuple[str, Any]:
    """The first side's answer as a page puts it together, and the last value of the panes."""
    text: list[str] = []
    value: Any = None
    for part, data in events:
        if part != "panes":
            continue
        value = json.loads(data)
        side = value["sides"][0]
        text = [] if side["reset"] else text
        text += [span for span, _ in side["spans"][max(0, len(text) - side["from"]) :]]
    return "".join(text), value


async def test_a_run_is_followed_to_its_end(host: Host, client: httpx.AsyncClient) -> None:
    comparison = host.comparison(SIDES, workload(300))
    await host.start(comparison, "a test")
    await streaming(comparison)
    events = await followed(client, comparison.id, "zh-CN")
    assert comparison.finished
    text, value = answer_in(events)
    assert text == comparison.run.sides[0].requests[0].output_text
    assert "在这一次竞速中" in value["headline"]
    assert [part for part, _ in events if part == "charts"]
    assert events[-1][0] == "end"


async def test_a_run_that_ended_meanwhile(host: Host, client: httpx.AsyncClient) -> None:
    """The connection was lost, or another run has begun since: the whole, and the end."""
    first = await raced(host)
    second = await raced(host)
    for run in (first, second):
        events = await followed(client, run.id)
        text, value = answer_in(events)
        assert (text, value["run"]) == (run.run.sides[0].requests[0].output_text, run.id)
        assert [part for part, _ in events] == ["panes", "charts", "end"]


async def test_a_sweep_of_the_history(host: Host, client: httpx.AsyncClient) -> None:
    sweep = made_sweep("k=1..4")
    save(host.history, sweep)
    events = dict(await followed(client, sweep.id))
    assert [*events] == ["progress", "outcome", "points", "charts", "end"]
    assert len(json.loads(events["points"])["rows"]) == 4


async def test_what_nobody_knows_has_ended(client: httpx.AsyncClient) -> None:
    """So the page's buttons can be used again."""
    assert [part for part, _ in await followed(client, "no-such-run")] == ["end"]


async def test_a_run_that_waits_in_line_is_stopped(host: Host, client: httpx.AsyncClient) -> None:
    running = host.comparison(SIDES, workload(2000))
    await host.start(running, "a test")
    waiting = host.comparison(SIDES, workload(4))
    await host.start(waiting, "a test", wait=True)
    waiting.stop()
    _, value = answer_in(await followed(client, waiting.id))
    assert say("race.stopped") in value["headline"]
    running.stop()
    await finished(running)


def test_stop_and_following_hold_no_place_in_the_queue(host: Host) -> None:
    """Everything in Gradio's queue waits behind 40 slow requests."""
    with gr.Blocks() as page:
        buttons = controls.build(host)
        controls.wire(buttons, host, lambda values, mode: None, lambda error, values: None, set())  # type: ignore[arg-type,return-value]
    queued = {target for function in page.fns.values() if function.queue for target in function.targets}
    assert {block for block, _ in queued} == {part._id for part in (buttons.race, buttons.measure, buttons.wait)}
