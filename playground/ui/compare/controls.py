"""The buttons that start, follow and stop a run, and what they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from playground.domain.errors import HostBusy, PlaygroundError
from playground.domain.record.run import Mode, Status
from playground.i18n import Locale, say
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.live import EXAMINING
from playground.ui.shared import message, view
from playground.ui.shared.labels import label, visitor_locale

# Seconds between repaints. While something is measured, the page must not take processor time from the engine.
REPAINT_S: dict[Mode, float] = {"race": 0.04, "measured": 0.5}
CHARTS_S: dict[Mode, float] = {"race": 0.5, "measured": 2.0}

# The page's values -> the run to start. Raises InvalidInput.
Reader = Callable[[Mapping[Any, Any], Mode], Comparison]
# An error and the page's values -> the field that the error is about, if that is known.
Locator = Callable[[PlaygroundError, Mapping[Any, Any]], message.FieldPlace | None]


@dataclass
class Controls:
    """The buttons and messages. `mode` is that of the latest run that was started here: the one that waits in line
    if the engines are taken."""

    race: gr.Button
    measure: gr.Button
    stop: gr.Button
    watch: gr.Button
    wait: gr.Button
    stop_engines: gr.Button
    message: gr.HTML
    mode: gr.State
    run_id: gr.State


def build() -> Controls:
    with gr.Row():
        race = gr.Button(label("race"), variant="primary", scale=2, min_width=110, elem_id="race")
        measure = gr.Button(label("measure"), variant="primary", scale=2, min_width=110, elem_id="measure")
        stop = gr.Button(label("stop"), variant="stop", visible=False, min_width=110, elem_id="stop")
        watch = gr.Button(label("watch"), visible=False, min_width=110, elem_id="watch")
        wait = gr.Button(label("wait"), visible=False, min_width=110, elem_id="wait")
        engines = gr.Button(label("stop_engines"), variant="secondary", min_width=110, elem_id="stop-engines")
    place = message.build()
    return Controls(race, measure, stop, watch, wait, engines, place, gr.State("race"), gr.State(""))


def wire(
    controls: Controls,
    host: Host,
    read: Reader,
    locate: Locator,
    inputs: set[Any],
    panes: gr.HTML,
    charts: gr.HTML,
) -> None:
    """Connect the events. Text and charts are two streams, so that drawing never delays a token."""
    runs = Runs(controls, host, read, locate)
    started = [controls.run_id, controls.mode, controls.race, controls.measure, controls.stop]
    started += [controls.stop_engines, controls.watch, controls.wait, controls.message]
    ended = [controls.race, controls.measure, controls.stop, controls.stop_engines]
    for button, handler, read_from in (
        (controls.race, runs.race, inputs),
        (controls.measure, runs.measure, inputs),
        (controls.wait, runs.queue, inputs),
        (controls.watch, runs.join, None),
    ):
        begun = button.click(handler, read_from, started, show_progress="hidden", concurrency_limit=None)
        streams = {"show_progress": "hidden", "concurrency_limit": None}
        # Gradio's frontend searches its whole tree for each output of each message, so only the panes are outputs.
        painted = begun.then(runs.paint, controls.run_id, panes, **streams)
        painted.then(runs.ended, None, ended, show_progress="hidden")
        begun.then(runs.draw, controls.run_id, charts, **streams)
    controls.stop.click(runs.stop, controls.run_id, None, show_progress="hidden", concurrency_limit=None)
    controls.stop_engines.click(runs.stop_engines, None, controls.message, concurrency_limit=None)


class Runs:
    """The handlers."""

    def __init__(self, controls: Controls, host: Host, read: Reader, locate: Locator) -> None:
        self._controls = controls
        self._host = host
        self._read = read
        self._locate = locate

    async def race(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(values, "race", visitor_locale(request), wait=False)

    async def measure(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(values, "measured", visitor_locale(request), wait=False)

    async def queue(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(values, values[self._controls.mode], visitor_locale(request), wait=True)

    async def join(self) -> dict[Any, Any]:
        """Watch the run that is using the engines."""
        controls, live = self._controls, self._host.latest
        changed = {controls.stop: gr.update(visible=live is not None and not live.finished)}
        run_id = live.run.id if live else ""
        return {controls.run_id: run_id, **self._offers(busy=False), controls.message: "", **changed}

    async def _begin(self, values: Mapping[Any, Any], mode: Mode, locale: Locale, wait: bool) -> dict[Any, Any]:
        controls = self._controls
        try:
            self._host.open()
            # Prompts may come from a file, or be generated.
            comparison = await asyncio.to_thread(self._read, values, mode)
            await self._host.start(comparison, say("host.page", locale), wait=wait)
        except PlaygroundError as error:
            offers = self._offers(busy=isinstance(error, HostBusy))
            alert = message.alert(error, locale, self._locate(error, values))
            return {controls.run_id: "", controls.mode: mode, controls.message: alert, **offers}
        off = gr.update(interactive=False)
        changed = {button: off for button in (controls.race, controls.measure, controls.stop_engines)}
        changed |= {controls.stop: gr.update(visible=True), **self._offers(busy=False)}
        return {controls.run_id: comparison.run.id, controls.message: "", **changed}

    def _offers(self, busy: bool) -> dict[Any, Any]:
        """Whether to offer watching: only a run of this process can be watched."""
        controls, live = self._controls, self._host.latest
        can_watch = busy and live is not None and not live.finished
        return {controls.watch: gr.update(visible=can_watch), controls.wait: gr.update(visible=busy)}

    def _followed(self, run_id: str) -> Comparison | None:
        return self._host.followed(run_id) if run_id else None

    async def paint(self, run_id: str, request: gr.Request) -> AsyncIterator[Any]:
        comparison = self._followed(run_id)
        if comparison is None:
            # Yield once: a generator that yields nothing would empty its outputs.
            yield gr.skip()
            return
        painter = view.painter(self._host.config, comparison.run, visitor_locale(request), comparison)
        yield await asyncio.to_thread(painter.paint, whole=True)
        while not comparison.finished:
            await asyncio.sleep(REPAINT_S[comparison.run.mode])
            yield painter.paint() if comparison.run.mode == "race" else await asyncio.to_thread(painter.paint)
        yield await asyncio.to_thread(painter.paint, whole=True)

    async def ended(self) -> dict[Any, Any]:
        controls = self._controls
        changed = {button: gr.update(interactive=True) for button in (controls.race, controls.measure)}
        return {
            **changed,
            controls.stop: gr.update(visible=False),
            controls.stop_engines: gr.update(interactive=True),
        }

    async def draw(self, run_id: str, request: gr.Request) -> AsyncIterator[Any]:
        comparison, locale = self._followed(run_id), visitor_locale(request)
        if comparison is None:
            yield gr.skip()
            return
        drawer = view.Drawer(comparison.run, locale)
        status: Status = "running"
        while status == "running":
            status = comparison.run.status
            if comparison.live.phase in ("streaming", "measuring", *EXAMINING, "finished"):
                yield await asyncio.to_thread(drawer.draw)
            await asyncio.sleep(CHARTS_S[comparison.run.mode])

    async def stop(self, run_id: str) -> None:
        if comparison := self._followed(run_id):
            comparison.stop()

    async def stop_engines(self, request: gr.Request) -> str:
        locale = visitor_locale(request)
        if self._host.pool.holder is not None:
            return f'<div class="alert"><p>{escape(say("ui.engines_busy", locale))}</p></div>'
        await self._host.pool.stop_all()
        return f"<p>{escape(say('ui.engines_stopped', locale))}</p>"
