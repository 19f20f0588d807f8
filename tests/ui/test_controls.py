"""The buttons: what waits in line is what was asked for; only one of them starts anything while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr
import pytest
from test_compare import SIDES, fake_runtime, finished, host, workload  # noqa: F401

from playground.compare import Comparison
from playground.domain.measurement import Measurement
from playground.domain.records import Mode
from playground.engine.pool import Holder
from playground.host import Host
from playground.ui import runs

REQUEST = gr.Request(headers={"accept-language": "en"})


@pytest.mark.parametrize("mode", ["race", "measured"])
async def test_what_was_asked_for_waits_in_line(host: Host, mode: Mode) -> None:  # noqa: F811
    plan = Measurement.model_validate({"max_rounds": 6, "profile": {"kind": "concurrency", "requests": 1}})

    def read(given: Mapping[Any, Any], wanted: Mode) -> Comparison:
        return host.comparison(SIDES, workload(4), plan if wanted == "measured" else None)

    with gr.Blocks():
        controls = runs.build()
    handlers = runs.Runs(controls, host, read, lambda error, given: None)
    async with host.pool.lease(Holder("another", "a test", "12:00:00", "other"), wait=False):
        asked = handlers.race if mode == "race" else handlers.measure
        shown = await asked({}, REQUEST)
        assert shown[controls.run_id] == ""
        assert shown[controls.wait]["visible"]
        assert "another" in shown[controls.message]
        shown = await handlers.queue({controls.asked: shown[controls.asked]}, REQUEST)
        assert shown[controls.race]["interactive"] is False
        assert shown[controls.measure]["interactive"] is False
        waiting = host.followed(shown[controls.run_id])
    assert waiting is not None
    await finished(waiting)
    assert (waiting.run.mode, waiting.run.status) == (mode, "done")
    ended = await handlers.ended()
    assert ended[controls.race]["interactive"] is ended[controls.measure]["interactive"] is True
