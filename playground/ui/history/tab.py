"""The History tab: newest first, filtered; an opened run looks as it did live."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from playground.i18n import Locale, say
from playground.runs.host import Host
from playground.store import Summary
from playground.ui.shared import view
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.sweep import view as sweep_view
from playground.ui.sweep.view import SweepView

from . import actions as history_actions

# The columns of the list, by name; `ui.col_<name>` heads each.
COLUMNS: dict[str, Callable[[Summary, Locale], str]] = {
    "time": lambda summary, _: summary.created_at.replace("T", " ")[:19],
    "preset": lambda summary, _: summary.preset or "-",
    "sides": lambda summary, _: " | ".join(summary.labels),
    "mode": lambda summary, locale: say(f"race.mode_{summary.mode}", locale),
    "prompt": lambda summary, _: summary.prompt.replace("\n", " ")[:80],
    "status": lambda summary, locale: say(f"race.{summary.status}", locale),
}


@dataclass
class HistoryTab:
    """The components that events read and change."""

    tab: gr.Tab
    text: gr.Textbox
    model: gr.Textbox
    preset: gr.Dropdown
    refresh: gr.Button
    note: gr.HTML
    runs: gr.HTML
    actions: gr.HTML
    sweep: SweepView
    panes: gr.HTML
    charts: gr.HTML


def build(tab: gr.Tab, host: Host) -> HistoryTab:
    with gr.Row():
        text = gr.Textbox(label=label("hist_text"), placeholder=label("hist_text_placeholder"), min_width=160)
        model = gr.Textbox(label=label("hist_model"), min_width=160)
        preset = gr.Dropdown([""], value="", label=label("hist_preset"), min_width=160)
        refresh = gr.Button(label("hist_refresh"), scale=0, min_width=120)
    note = gr.HTML(apply_default_css=False)
    runs, actions, sweep = view.run_list("runs"), history_actions.build(host), sweep_view.build("history-points")
    panes, charts = view.panes("history-panes"), view.chart_grid()
    return HistoryTab(tab, text, model, preset, refresh, note, runs, actions, sweep, panes, charts)


def wire(tab: HistoryTab, host: Host) -> None:
    def listed(text: str, model: str, preset: str, request: gr.Request) -> dict[Any, Any]:
        locale = visitor_locale(request)
        summaries = host.history.summaries(text=text, model=model, preset=preset or "")
        nothing = "none" if text or model or preset else "empty"
        return {
            tab.runs: _listed(summaries, locale),
            tab.preset: gr.update(choices=["", *host.history.presets()]),
            tab.note: "" if summaries else f"<p>{escape(say(f'ui.hist_{nothing}', locale))}</p>",
        }

    def opened(event: gr.EventData, request: gr.Request) -> Any:
        locale = visitor_locale(request)
        if (sweep := host.history.sweep(event.run)) is not None:
            offered = {tab.actions: history_actions.offers(sweep, locale)}
            return {**offered, **tab.sweep.of(host.config, sweep, locale), tab.panes: "", tab.charts: "{}"}
        run = host.history.get(event.run)
        if run is None:
            return gr.skip()
        panes, charts = view.rendered(host.config, run, locale)
        offered = {tab.actions: history_actions.offers(run, locale)}
        return {**offered, **tab.sweep.nothing(), tab.panes: panes, tab.charts: charts}

    filters = [tab.text, tab.model, tab.preset]
    for event in (tab.tab.select, tab.refresh.click, tab.text.submit, tab.model.submit, tab.preset.input):
        event(listed, filters, [tab.runs, tab.preset, tab.note], show_progress="hidden", concurrency_limit=None)
    outputs = [tab.actions, *tab.sweep.outputs(), tab.panes, tab.charts]
    tab.runs.click(opened, None, outputs, show_progress="minimal", concurrency_limit=None)
    sweep_view.wire(tab.sweep, host, tab.panes, tab.charts, {tab.actions: history_actions.offers})


def _listed(summaries: Sequence[Summary], locale: Locale) -> str:
    """The list's value."""
    rows = [
        {"id": summary.id, "cells": [cell(summary, locale) for cell in COLUMNS.values()]} for summary in summaries
    ]
    headers = [say(f"ui.col_{name}", locale) for name in COLUMNS]
    return json.dumps({"columns": [*COLUMNS], "headers": headers, "rows": rows})
