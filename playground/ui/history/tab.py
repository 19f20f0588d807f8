"""The History tab: newest first, filtered; an opened run looks as it did live."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, cast

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message
from playground.logs import refused
from playground.report.answer.text import VERDICTS, result_text
from playground.report.side_by_side import MOST_RUNS
from playground.runs.host import Host
from playground.store import READERS, Filters, Listed, Summary, readable
from playground.ui.shared import save_buttons, view
from playground.ui.shared.form_origin import stored
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.message import alert
from playground.ui.shared.visitor import visitor_of
from playground.ui.sweep import view as sweep_view
from playground.ui.sweep.view import SweepView

from . import imports
from .beside import beside_html
from .trend import trend_html

logger = logging.getLogger(__name__)

# What is said of a request, while the history itself can be used.
USABLE = ("history.long_text", "host.too_many_wait")

offers = partial(save_buttons.offers, load=True)


def _sides(summary: Summary, _: Locale) -> str:
    """The labels; of a sweep also what is varied, for its line shows no prompt."""
    labels = " | ".join(summary.labels)
    return f"{labels} · {summary.prompt}" if summary.mode == "sweep" else labels


def _prompt(summary: Summary, locale: Locale) -> str:
    if summary.problem:
        return say_message(summary.problem, locale)
    return "" if summary.mode == "sweep" else summary.prompt.replace("\n", " ")[:80]


# The columns of the list, by name; `ui.col_<name>` heads each.
COLUMNS: dict[str, Callable[[Summary, Locale], str]] = {
    "time": lambda summary, _: summary.created_at.replace("T", " ")[:19],
    "preset": lambda summary, _: summary.preset or "",
    "sides": _sides,
    "mode": lambda summary, locale: say(f"race.mode_{summary.mode}", locale) if summary.readable else "-",
    "result": lambda summary, locale: result_text(summary.result.headline, locale),
    "prompt": _prompt,
    "tags": lambda summary, _: " ".join([*("★" * summary.result.star), summary.result.tags]),
    "status": lambda summary, locale: say(f"race.{summary.status}", locale),
}
ORDERS = ("newest", "speed_up", "rate")
PAGE = 50


@dataclass
class HistoryTab:
    """The components that events read and change. `offset`: how many lines are on the pages before; `problem` says
    why something can't be opened."""

    tab: gr.Tab
    text: gr.Textbox
    model: gr.Textbox
    choices: dict[str, gr.Dropdown]
    starred: gr.Checkbox
    refresh: gr.Button
    importing: gr.UploadButton
    earlier: gr.Button
    later: gr.Button
    offset: gr.State
    note: gr.HTML
    trend: gr.HTML
    runs: gr.HTML
    problem: gr.HTML
    beside: gr.HTML
    actions: gr.HTML
    sweep: SweepView
    panes: gr.HTML
    charts: gr.HTML


def build(tab: gr.Tab, host: Host) -> HistoryTab:

    def choice(name: str) -> gr.Dropdown:
        return gr.Dropdown([("", "")], value="", label=label(f"hist_{name}"), min_width=130)

    with gr.Row(elem_classes="history-filters"):
        text = gr.Textbox(
            label=label("hist_text"), placeholder=label("hist_text_placeholder"), min_width=240, scale=3
        )
        choices = {"order": choice("order")}
        starred = gr.Checkbox(label=label("hist_starred"), min_width=130, elem_id="starred")
        refresh = gr.Button(label("hist_refresh"), scale=0, min_width=100)
        importing = imports.build()
    with gr.Accordion(label("hist_more"), open=False, elem_id="history-more"), gr.Row():
        choices |= {name: choice(name) for name in ("tag", "preset", "machine", "version", "verdict")}
        model = gr.Textbox(label=label("hist_model"), min_width=130)
    note = gr.HTML(apply_default_css=False, elem_id="history-note")
    trend = gr.HTML(apply_default_css=False, elem_id="history-trend")
    runs = view.run_list("runs")
    with gr.Row():
        later = gr.Button(label("hist_later"), scale=0, min_width=100, visible=False, size="sm")
        earlier = gr.Button(label("hist_earlier"), scale=0, min_width=100, visible=False, size="sm")
    problem = gr.HTML(apply_default_css=False, elem_id="history-problem")
    beside = gr.HTML(
        js_on_load="\n".join(map(view.asset, ("address.js", "beside.js"))),
        apply_default_css=False,
        elem_id="beside",
    )
    actions, sweep = save_buttons.build(host, "kept"), sweep_view.build("history-points")
    panes, charts = view.panes("history-panes"), view.chart_grid()
    return HistoryTab(
        tab=tab,
        text=text,
        model=model,
        choices=choices,
        starred=starred,
        refresh=refresh,
        importing=importing,
        earlier=earlier,
        later=later,
        offset=gr.State(0),
        note=note,
        trend=trend,
        runs=runs,
        problem=problem,
        beside=beside,
        actions=actions,
        sweep=sweep,
        panes=panes,
        charts=charts,
    )


def wire(tab: HistoryTab, host: Host) -> None:
    """Connect the events."""
    handlers = Handlers(tab, host)
    filters: set[Any] = {tab.offset, tab.text, tab.model, tab.starred, *tab.choices.values()}
    lines = [tab.runs, *tab.choices.values(), tab.note, tab.trend, tab.offset, tab.earlier, tab.later]
    quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    fields = [
        tab.text.submit,
        tab.model.submit,
        tab.starred.input,
        *(choice.input for choice in tab.choices.values()),
    ]
    for event in (tab.tab.select, tab.refresh.click, *fields):
        event(handlers.listed, filters, lines, **quiet)
    tab.earlier.click(handlers.earlier, filters, lines, **quiet)
    tab.later.click(handlers.later, filters, lines, **quiet)
    tab.actions.change(handlers.again, filters, lines, **quiet)
    imports.wire(tab.importing, host, handlers.listed, filters, lines, tab.note)
    opening = Opening(tab, host)
    tab.runs.click(opening.clicked, None, opening.outputs(), show_progress="minimal", concurrency_limit=None)
    sweep_view.wire(tab.sweep, host, tab.panes, tab.charts, tab.problem, {tab.actions: offers})


class Handlers:
    """What the events do: reading in threads of the history's own, and a sentence for what can't be read."""

    def __init__(self, tab: HistoryTab, host: Host) -> None:
        self._tab = tab
        self._host = host

    async def listed(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        """The first page of the runs and sweeps that pass the filters."""
        return await self._page(values, 0, visitor_locale(request))

    async def earlier(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._page(values, (values[self._tab.offset] or 0) + PAGE, visitor_locale(request))

    async def later(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._page(values, max((values[self._tab.offset] or 0) - PAGE, 0), visitor_locale(request))

    async def again(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._page(values, values[self._tab.offset] or 0, visitor_locale(request))

    async def _page(self, values: Mapping[Any, Any], offset: int, locale: Locale) -> dict[Any, Any]:
        """The lines from there on. Those that are only in memory come first. Of a tab that was not opened yet, no
        field has a value."""
        tab = self._tab
        chosen = {name: values[choice] for name, choice in tab.choices.items() if values[choice]}
        typed = {"text": values[tab.text] or "", "model": values[tab.model] or ""}
        filters = cast(Filters, {**typed, "starred": bool(values[tab.starred]), **chosen})
        limited = any(value for name, value in filters.items() if name != "order")
        unsaved = [Summary.unsaved(job.record, job.unsaved) for job in self._host.unsaved() if job.unsaved]
        try:
            saved, limits, choices = await READERS.run(self._read, filters, offset)
            preset = filters.get("preset")
            trend = await READERS.run(trend_html, self._host, preset, locale) if preset else ""
        except PlaygroundError as error:
            refused(logger, error, "the history is not listed")
            usable = error.message_id in USABLE
            why = error if usable else Message("history.unavailable", {"why": error.as_message()})
            return {tab.runs: _listed(unsaved, locale), tab.note: alert(why, locale)}
        nothing = Message(f"ui.hist_{'none' if limited or offset else 'empty'}")
        notes = [*([limits] if limits else []), *([] if saved else [nothing])]
        ids = {line.id for line in unsaved}
        lines = [*(unsaved if not offset else []), *(line for line in saved[:PAGE] if line.id not in ids)]
        choices |= {
            "verdict": [(say(text, locale), name) for name, text in VERDICTS.items()],
            "order": [(say(f"hist.by_{name}", locale), name) for name in ORDERS[1:]],
        }
        first = {"order": say("hist.by_newest", locale)}
        return {
            tab.runs: _listed(lines, locale),
            **{
                tab.choices[name]: gr.update(choices=[(first.get(name, ""), ""), *values])
                for name, values in choices.items()
            },
            tab.note: "".join(f"<p>{escape(say_message(note, locale))}</p>" for note in notes),
            tab.trend: trend,
            tab.offset: offset,
            tab.earlier: gr.update(visible=len(saved) > PAGE),
            tab.later: gr.update(visible=offset > 0),
        }

    def _read(self, filters: Filters, offset: int) -> tuple[list[Summary], Message | None, dict[str, Any]]:
        history = self._host.history
        # One more tells whether there is another page.
        lines = history.summaries(limit=PAGE + 1, offset=offset, **filters)
        limits = history.search_limits(text=filters.get("text", ""), model=filters.get("model", ""))
        names: tuple[Listed, ...] = ("preset", "machine", "version")
        offered = {name: history.values(name) for name in names} | {"tag": history.tags()}
        return lines, limits, {name: [(value, value) for value in values] for name, values in offered.items()}


class Opening:
    """Shows a run or sweep in the tab."""

    def __init__(self, tab: HistoryTab, host: Host) -> None:
        self._tab = tab
        self._host = host

    def outputs(self) -> list[Any]:
        tab = self._tab
        return [tab.problem, tab.beside, tab.actions, *tab.sweep.outputs(), tab.panes, tab.charts]

    async def clicked(self, event: gr.EventData, request: gr.Request) -> Any:
        locale, compared = visitor_locale(request), getattr(event, "compared", None)
        if isinstance(compared, list):
            return await self.compared([str(saved_id) for saved_id in compared[: MOST_RUNS + 1]], locale)
        return await self.opened(str(event.run), request) or gr.skip()

    async def compared(self, ids: Sequence[str], locale: Locale) -> dict[Any, Any]:
        """These runs beside each other, or why they can't be."""
        tab = self._tab
        try:
            return {**self._closed(), tab.beside: await READERS.run(beside_html, self._host, ids, locale)}
        except PlaygroundError as error:
            logger.warning("%s are not compared: %s", ", ".join(ids), say_message(error))
            return {**self._closed(), tab.problem: alert(error, locale)}

    def _closed(self) -> dict[Any, Any]:
        tab = self._tab
        empty = {tab.actions: "", tab.panes: "", tab.charts: "{}", tab.problem: "", tab.beside: ""}
        return {**empty, **tab.sweep.nothing()}

    async def opened(self, saved_id: str, request: gr.Request) -> dict[Any, Any]:
        """The run or sweep as it looked live, or why it can't be opened; nothing, if there is none of that id."""
        tab, locale = self._tab, visitor_locale(request)
        closed = self._closed()
        try:
            visitor = visitor_of(self._host.config, request)
            rendered = await READERS.run(self._rendered, saved_id, locale, visitor)
        except PlaygroundError as error:
            logger.warning("%s is not opened: %s", saved_id, say_message(error))
            return {**closed, tab.problem: alert(error, locale)}
        return {**closed, **rendered} if rendered else {}

    def _rendered(self, saved_id: str, locale: Locale, visitor: str) -> dict[Any, Any]:
        """Nothing, if there is none of that id."""
        tab = self._tab
        record = stored(self._host, saved_id)
        if record is None:
            return {}
        with readable(saved_id):
            # A point's run is found by its sweep: nothing is added to it, nor to what is not saved, or another's.
            point = isinstance(record, Run) and record.sweep_id is not None
            unsaved = self._host.unsaved_record(saved_id) is not None
            fixed = point or unsaved or not self._host.may_change(saved_id, visitor)
            result = None if fixed else self._host.history.result(saved_id)
            offered = {tab.actions: offers(record, locale, result=result)}
            if isinstance(record, Sweep):
                return {**offered, **tab.sweep.of(self._host.config, record, locale)}
            panes, charts = view.rendered(self._host, record, locale)
            return {**offered, tab.panes: panes, tab.charts: charts}


def _listed(summaries: Sequence[Summary], locale: Locale) -> str:
    """The list's value."""
    rows = [
        {
            "id": summary.id,
            "cells": [cell(summary, locale) for cell in COLUMNS.values()],
            "comparable": summary.readable and summary.mode != "sweep",
        }
        for summary in summaries
    ]
    headers = [say(f"ui.col_{name}", locale) for name in COLUMNS]
    compare = say("hist.compare", locale)
    return json.dumps({"columns": [*COLUMNS], "headers": headers, "rows": rows, "compare": compare})
