"""The History tab: newest first, filtered; an opened run looks as it did live."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message
from playground.runs.host import Host
from playground.store import READERS, Summary, readable
from playground.ui.shared import save_buttons, view
from playground.ui.shared.form_origin import stored
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.message import alert
from playground.ui.sweep import view as sweep_view
from playground.ui.sweep.view import SweepView

logger = logging.getLogger(__name__)

offers = partial(save_buttons.offers, load=True)

# The columns of the list, by name; `ui.col_<name>` heads each.
COLUMNS: dict[str, Callable[[Summary, Locale], str]] = {
    "time": lambda summary, _: summary.created_at.replace("T", " ")[:19],
    "preset": lambda summary, _: summary.preset or "-",
    "sides": lambda summary, _: " | ".join(summary.labels),
    "mode": lambda summary, locale: say(f"race.mode_{summary.mode}", locale) if summary.readable else "-",
    "prompt": lambda summary, locale: (
        say_message(summary.problem, locale) if summary.problem else summary.prompt.replace("\n", " ")[:80]
    ),
    "status": lambda summary, locale: say(f"race.{summary.status}", locale),
}


@dataclass
class HistoryTab:
    """The components that events read and change. `problem` says why something can't be opened."""

    tab: gr.Tab
    text: gr.Textbox
    model: gr.Textbox
    preset: gr.Dropdown
    refresh: gr.Button
    note: gr.HTML
    runs: gr.HTML
    problem: gr.HTML
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
    runs, problem = view.run_list("runs"), gr.HTML(apply_default_css=False)
    actions, sweep = save_buttons.build(host, "kept"), sweep_view.build("history-points")
    panes, charts = view.panes("history-panes"), view.chart_grid()
    return HistoryTab(tab, text, model, preset, refresh, note, runs, problem, actions, sweep, panes, charts)


def wire(tab: HistoryTab, host: Host) -> None:
    async def listed(text: str, model: str, preset: str, request: gr.Request) -> dict[Any, Any]:
        return await READERS.run(listing, text, model, preset or "", visitor_locale(request))

    def listing(text: str, model: str, preset: str, locale: Locale) -> dict[Any, Any]:
        unsaved = [Summary.unsaved(job.record, job.unsaved) for job in host.unsaved() if job.unsaved]
        ids = {line.id for line in unsaved}
        try:
            summaries = host.history.summaries(text=text, model=model, preset=preset)
            limits = host.history.search_limits(text=text, model=model)
            choices = gr.update(choices=["", *host.history.presets()])
        except PlaygroundError as error:
            logger.exception("the history is not listed")
            about_search = error.message_id == "history.long_text"
            why = error if about_search else Message("history.unavailable", {"why": error.as_message()})
            return {tab.runs: _listed(unsaved, locale), tab.preset: gr.skip(), tab.note: alert(why, locale)}
        nothing = Message(f"ui.hist_{'none' if text or model or preset else 'empty'}")
        notes = [*([limits] if limits else []), *([] if summaries else [nothing])]
        return {
            tab.runs: _listed([*unsaved, *(line for line in summaries if line.id not in ids)], locale),
            tab.preset: choices,
            tab.note: "".join(f"<p>{escape(say_message(note, locale))}</p>" for note in notes),
        }

    async def opened(event: gr.EventData, request: gr.Request) -> Any:
        return await READERS.run(opening, str(event.run), visitor_locale(request))

    def opening(saved_id: str, locale: Locale) -> Any:
        closed = {tab.actions: "", **tab.sweep.nothing(), tab.panes: "", tab.charts: "{}", tab.problem: ""}
        try:
            record = stored(host, saved_id)
            with readable(saved_id):
                return gr.skip() if record is None else {**closed, **rendered(record, locale)}
        except PlaygroundError as error:
            logger.exception("%s is not opened", saved_id)
            return {**closed, tab.problem: alert(error, locale)}

    def rendered(record: Run | Sweep, locale: Locale) -> dict[Any, Any]:
        offered = {tab.actions: offers(record, locale)}
        if isinstance(record, Sweep):
            return {**offered, **tab.sweep.of(host.config, record, locale)}
        panes, charts = view.rendered(host.config, record, locale)
        return {**offered, tab.panes: panes, tab.charts: charts}

    filters = [tab.text, tab.model, tab.preset]
    for event in (tab.tab.select, tab.refresh.click, tab.text.submit, tab.model.submit, tab.preset.input):
        event(listed, filters, [tab.runs, tab.preset, tab.note], show_progress="hidden", concurrency_limit=None)
    outputs = [tab.problem, tab.actions, *tab.sweep.outputs(), tab.panes, tab.charts]
    tab.runs.click(opened, None, outputs, show_progress="minimal", concurrency_limit=None)
    sweep_view.wire(tab.sweep, host, tab.panes, tab.charts, tab.problem, {tab.actions: offers})


def _listed(summaries: Sequence[Summary], locale: Locale) -> str:
    """The list's value."""
    rows = [
        {"id": summary.id, "cells": [cell(summary, locale) for cell in COLUMNS.values()]} for summary in summaries
    ]
    headers = [say(f"ui.col_{name}", locale) for name in COLUMNS]
    return json.dumps({"columns": [*COLUMNS], "headers": headers, "rows": rows})
