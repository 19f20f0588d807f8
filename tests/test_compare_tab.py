"""The Compare tab's forms: what a preset fills in is that preset again when it is read."""

from __future__ import annotations

from typing import Any

import gradio as gr
from test_compare import fake_runtime, host  # noqa: F401

from playground import presets
from playground.engine import devices
from playground.host import Host
from playground.ui import compare_tab


def test_a_preset_that_was_not_touched(host: Host) -> None:  # noqa: F811
    machine = devices.machine()
    with gr.Blocks():
        tab = compare_tab.build(host, machine)
    given: dict[Any, Any] = {component: getattr(component, "value", None) for component in tab.inputs()}
    for name in presets.names():
        preset = presets.load(name)
        given[tab.preset] = name
        for component, filled in compare_tab._filled(tab, preset, machine, "en").items():
            given[component] = filled.get("value") if isinstance(filled, dict) else filled
        run = compare_tab._comparison(tab, host, given, "measured").run
        assert (run.preset, run.measurement) == (name, preset.measurement)
        assert [side.profile for side in run.sides] == [side.profile for side in preset.sides]
    given[tab.prompt] = "another one"
    assert compare_tab._comparison(tab, host, given, "race").run.preset is None
