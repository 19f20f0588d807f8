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

# What is said of a request, while the history itself can be used.
USABLE = ("history.long_text", "host.too_many_wait")

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
    """Connect the events."""
    handlers = Handlers(tab, host)
    filters, lines = [tab.text, tab.model, tab.preset], [tab.runs, tab.preset, tab.note]
    for event in (tab.tab.select, tab.refresh.click, tab.text.submit, tab.model.submit, tab.preset.input):
        event(handlers.listed, filters, lines, show_progress="hidden", concurrency_limit=None)
    opening = Opening(tab, host)
    tab.runs.click(opening.clicked, None, opening.outputs(), show_progress="minimal", concurrency_limit=None)
    sweep_view.wire(tab.sweep, host, tab.panes, tab.charts, tab.problem, {tab.actions: offers})


class Handlers:
    """What the events do: reading in threads of the history's own, and a sentence for what can't be read."""

    def __init__(self, tab: HistoryTab, host: Host) -> None:
        self._tab = tab
        self._host = host

    async def listed(self, text: str, model: str, preset: str, request: gr.Request) -> dict[Any, Any]:
        """The runs and sweeps that pass the filters. Those that are only in memory come first."""
        tab, locale, preset = self._tab, visitor_locale(request), preset or ""
        unsaved = [Summary.unsaved(job.record, job.unsaved) for job in self._host.unsaved() if job.unsaved]
        try:
            saved, limits, presets = await READERS.run(self._read, text, model, preset)
        except PlaygroundError as error:
            logger.exception("the history is not listed")
            usable = error.message_id in USABLE
            why = error if usable else Message("history.unavailable", {"why": error.as_message()})
            return {tab.runs: _listed(unsaved, locale), tab.preset: gr.skip(), tab.note: alert(why, locale)}
        nothing = Message(f"ui.hist_{'none' if text or model or preset else 'empty'}")
        notes = [*([limits] if limits else []), *([] if saved else [nothing])]
        ids = {line.id for line in unsaved}
        return {
            tab.runs: _listed([*unsaved, *(line for line in saved if line.id not in ids)], locale),
            tab.preset: gr.update(choices=["", *presets]),
            tab.note: "".join(f"<p>{escape(say_message(note, locale))}</p>" for note in notes),
        }

    def _read(self, text: str, model: str, preset: str) -> tuple[list[Summary], Message | None, list[str]]:
        history = self._host.history
        lines = history.summaries(text=text, model=model, preset=preset)
        return lines, history.search_limits(text=text, model=model), history.presets()


class Opening:
    """Shows a run or sweep in the tab."""

    def __init__(self, tab: HistoryTab, host: Host) -> None:
        self._tab = tab
        self._host = host

    def outputs(self) -> list[Any]:
        tab = self._tab
        return [tab.problem, tab.actions, *tab.sweep.outputs(), tab.panes, tab.charts]

    async def clicked(self, event: gr.EventData, request: gr.Request) -> Any:
        return await self.opened(str(event.run), visitor_locale(request)) or gr.skip()

    async def opened(self, saved_id: str, locale: Locale) -> dict[Any, Any]:
        """The run or sweep as it looked live, or why it can't be opened; nothing, if there is none of that id."""
        tab = self._tab
        closed = {tab.actions: "", **tab.sweep.nothing(), tab.panes: "", tab.charts: "{}", tab.problem: ""}
        try:
            rendered = await READERS.run(self._rendered, saved_id, locale)
        except PlaygroundError as error:
            logger.exception("%s is not opened", saved_id)
            return {**closed, tab.problem: alert(error, locale)}
        return {**closed, **rendered} if rendered else {}

    def _rendered(self, saved_id: str, locale: Locale) -> dict[Any, Any]:
        """Nothing, if there is none of that id."""
        tab, config = self._tab, self._host.config
        record = stored(self._host, saved_id)
        if record is None:
            return {}
        with readable(saved_id):
            offered = {tab.actions: offers(record, locale)}
            if isinstance(record, Sweep):
                return {**offered, **tab.sweep.of(config, record, locale)}
            panes, charts = view.rendered(config, record, locale)
            return {**offered, tab.panes: panes, tab.charts: charts}


def _listed(summaries: Sequence[Summary], locale: Locale) -> str:
    """The list's value."""
    rows = [
        {"id": summary.id, "cells": [cell(summary, locale) for cell in COLUMNS.values()]} for summary in summaries
    ]
    headers = [say(f"ui.col_{name}", locale) for name in COLUMNS]
    return json.dumps({"columns": [*COLUMNS], "headers": headers, "rows": rows})
