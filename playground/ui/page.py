"""The whole page."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import gradio as gr

from playground import presets
from playground.domain.errors import PlaygroundError
from playground.engine import devices
from playground.i18n import LOCALES, Locale, say
from playground.runs.host import Host
from playground.store import READERS
from playground.ui.compare import cards as side_cards
from playground.ui.shared.field_names import knob_texts
from playground.ui.shared.form_origin import filled_from, from_preset
from playground.ui.shared.labels import label, visitor_locale

from . import arrival
from .arrival import Arrival
from .compare import tab as compare_tab
from .history import actions as history_actions
from .history import tab as history_tab
from .shared import message, view
from .sweep import actions as sweep_actions
from .sweep import tab as sweep_tab

# How long a visitor may take from an upload to the run that reads it.
UPLOAD_AGE_S = 7200


class Page(gr.Blocks):
    """Describes no API: Gradio would send the description with each page, also before a login."""

    def get_api_info(self, all_endpoints: bool = False, page: str | None = None) -> Any:
        return {"named_endpoints": {}, "unnamed_endpoints": {}}


def build(host: Host) -> gr.Blocks:
    """Nothing is built at import: every call builds a new page."""
    machine = devices.machine()
    gr.set_static_paths([view.PLOTLY_JS])
    # Uploaded files are read when a run is started, and deleted after a while.
    page = Page(
        title="vLLM A/B Playground", analytics_enabled=False, fill_width=True, delete_cache=(60, UPLOAD_AGE_S)
    )
    with page:
        header = gr.HTML(_header(machine, "en"), apply_default_css=False, js_on_load=view.asset("present.js"))
        address, problem = arrival.build()
        with gr.Tabs() as tabs:
            with gr.Tab(label("tab_compare"), id="compare"):
                compare = compare_tab.build(host, machine)
            with gr.Tab(label("tab_sweep"), id="sweep") as tab:
                sweep = sweep_tab.build(tab, presets.load(presets.EMBEDDED))
            with gr.Tab(label("tab_history"), id="history") as tab:
                history = history_tab.build(tab, host)
        compare_tab.wire(compare, host, sweep.plan)
        link = Arrival(host, problem, tabs, compare, sweep, history)
        sweep_actions.wire(sweep, compare, host, link.filled, link.outputs())
        history_tab.wire(history, host)
        history_actions.wire(history.actions, history.problem, host, tabs, compare, sweep)

        async def greet(base: str, request: gr.Request) -> dict[Any, Any]:
            host.open()
            locale = visitor_locale(request)
            running = host.latest if host.latest is not None and not host.latest.finished else None
            try:
                # Only a run of the history needs it, and a visit waits for nobody's search.
                preset = (
                    filled_from(host, base) if from_preset(base) else await READERS.run(filled_from, host, base)
                )
                chosen = compare.gallery.chosen(preset, locale)
                cards = side_cards.cards(preset.sides, preset.sides, locale)
            except PlaygroundError as error:
                # The fields came from a run that can't be read now; the page works without it.
                chosen, cards = message.alert(error, locale), gr.skip()
            return {
                header: _header(machine, locale),
                compare.gallery.component: chosen,
                compare.cards: cards,
                compare.controls.watch: gr.update(visible=running is not None),
                compare.controls.message: "" if running is None else _under_way(running.title, locale),
                **{knob.name: gr.update(choices=sweep_tab.choices(locale)) for knob in sweep.knobs},
            }

        watch, knobs = compare.controls.watch, (knob.name for knob in sweep.knobs)
        arrived = [header, compare.gallery.component, compare.cards, watch, compare.controls.message, *knobs]
        loaded = page.load(greet, compare.base, arrived, show_progress="hidden", queue=False)
        loaded.then(None, None, None, js="() => document.dispatchEvent(new CustomEvent('arrived'))")
        at_once: dict[str, Any] = {"show_progress": "hidden", "queue": False}
        sources = (address, compare.gallery.component, compare.controls.player, sweep.player)
        gr.on([source.click for source in sources], link.follow_link, None, link.outputs(), **at_once)
        compare.controls.watch.click(link.watch_run, None, link.outputs(), **at_once)
        sweep.watch.click(link.watch_sweep, None, link.outputs(), **at_once)
    return page


def _under_way(what: str, locale: Locale) -> str:
    return f'<p role="status">{escape(say("host.under_way", locale, what=what))}</p>'


def _header(machine: devices.Machine, locale: Locale) -> str:
    if machine.gpus:
        gpu = machine.gpus[0]
        gib = gpu.total_bytes / 1024**3
        where = say("ui.host_gpu", locale, count=len(machine.gpus), name=gpu.name, gib=gib)
    else:
        gib = machine.memory_bytes / 1024**3
        where = say("ui.host_cpu", locale, cpu=machine.cpu, cores=len(machine.cores), gib=gib)
    texts = json.dumps(knob_texts(locale), ensure_ascii=False)
    title, subtitle = say("ui.title", locale), say("ui.subtitle", locale)
    other = next(locale_ for locale_ in LOCALES if locale_ != locale)
    language = escape(say("ui.this_language", other))
    enter, leave = (escape(say(f"ui.present_{what}", locale)) for what in ("enter", "leave"))
    return (
        f'<div class="page-head"><div class="page-buttons"><button type="button" lang="{other}" '
        f'data-language="{other}">{language}</button>'
        f'<button type="button" class="present"><span class="enter">{enter}</span>'
        f'<span class="leave">{leave}</span></button></div><h1>{escape(title)}</h1>'
        f'<p class="host-line">{escape(subtitle)} <span class="where">{escape(where)}</span></p></div>'
        # Read by the knobs' script, once for all sides.
        f'<template id="knob-texts" data-texts="{escape(texts)}"></template>'
    )
