"""The buttons: what waits in line is what was asked for; only one of them starts anything while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest
from support.races import SIDES, finished, workload

from playground.domain.record.run import Mode
from playground.domain.spec.measurement import Measurement
from playground.engine.pool import Holder
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.ui.compare import controls
from playground.ui.shared.visitor import NAME

REQUEST = gr.Request(headers={"accept-language": "en"})


@pytest.mark.parametrize("mode", ["race", "measured"])
async def test_what_was_asked_for_waits_in_line(host: Host, mode: Mode) -> None:
    plan = Measurement.model_validate({"max_rounds": 6, "profile": {"kind": "concurrency", "requests": 1}})

    def read(given: Mapping[Any, Any], wanted: Mode) -> Comparison:
        return host.comparison(SIDES, workload(4), plan if wanted == "measured" else None)

    with gr.Blocks():
        buttons = controls.build(host)
    handlers = controls.Runs(buttons, host, read, lambda error, given: None)
    async with host.pool.lease(Holder("another", "a test", "12:00:00", "other"), wait=False):
        start = handlers.race if mode == "race" else handlers.measure
        shown = await start({}, REQUEST)
        assert shown[buttons.run_id] == ""
        assert shown[buttons.wait]["visible"]
        assert "another" in shown[buttons.message]
        shown = await handlers.queue({buttons.mode: shown[buttons.mode]}, REQUEST)
        assert shown[buttons.race]["interactive"] is False
        assert shown[buttons.measure]["interactive"] is False
        waiting = host.followed(shown[buttons.run_id])
    assert waiting is not None
    await finished(waiting)
    assert (waiting.run.mode, waiting.run.status) == (mode, "done")
    ended = await handlers.ended(waiting.id, REQUEST)
    assert ended[buttons.race]["interactive"] is ended[buttons.measure]["interactive"] is True


def visitor(name: str) -> gr.Request:
    """A request of the visitor whose browser has this name."""
    return gr.Request(headers={"cookie": f"{NAME}={name * 32}; other=1"})


async def test_only_who_started_a_run_can_stop_it(host: Host) -> None:
    """Where others are served. Somebody who watched could press Stop, and the owner's race ended."""
    host.config = replace(host.config, host="0.0.0.0")

    def read(given: Mapping[Any, Any], wanted: Mode) -> Comparison:
        return host.comparison(SIDES, workload(4000))

    with gr.Blocks():
        buttons = controls.build(host)
    handlers = controls.Runs(buttons, host, read, lambda error, given: None)
    shown = await handlers.race({}, visitor("a"))
    run_id = shown[buttons.run_id]
    assert shown[buttons.stop]["visible"]
    running = host.followed(run_id)
    assert running is not None
    for other in (visitor("b"), gr.Request(headers={}), gr.Request(headers={"cookie": f"{NAME}="})):
        assert "Another visitor" in await handlers.stop(run_id, other)
    assert not running.finished
    await handlers.stop(run_id, visitor("a"))
    await finished(running)
    assert running.run.status == "stopped"


async def test_on_this_machine_alone_everybody_is_the_host(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(4000))
    await host.start(comparison, "a test")
    with gr.Blocks():
        buttons = controls.build(host)
    handlers = controls.Runs(buttons, host, lambda given, mode: comparison, lambda error, given: None)
    await handlers.stop(comparison.id, visitor("a"))
    await finished(comparison)
    assert comparison.run.status == "stopped"
