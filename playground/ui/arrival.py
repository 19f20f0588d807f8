"""Opens what the page's address asks for: a run or sweep, the settings of one, a preset, or runs side by side."""

from __future__ import annotations

from typing import Any

import gradio as gr

from playground import presets
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale
from playground.report import recordings
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.sweep import SweepRun
from playground.store import READERS
from playground.ui.shared.visitor import visitor_of

from .compare import controls
from .compare import tab as compare_tab
from .compare.tab import CompareTab
from .history import actions as history_actions
from .history.tab import HistoryTab, Opening
from .links import Link
from .live import follower
from .shared import view
from .shared.form_origin import as_preset, settings_of
from .shared.labels import visitor_locale
from .shared.message import alert
from .sweep import actions as sweep_actions
from .sweep import tab as sweep_tab
from .sweep.tab import SweepTab


def build() -> tuple[gr.HTML, gr.HTML]:
    """The component that passes on the address, and the one that says why it can't be opened."""
    address = gr.HTML(
        html_template="<span hidden></span>",
        js_on_load=f"{view.asset('address.js')}\n{view.asset('arrive.js')}",
        apply_default_css=False,
        elem_classes="follower",
    )
    return address, gr.HTML(apply_default_css=False, elem_id="link-problem")


class Arrival:
    """The handlers."""

    def __init__(
        self,
        host: Host,
        problem: gr.HTML,
        tabs: gr.Tabs,
        compare: CompareTab,
        sweeps: SweepTab,
        history: HistoryTab,
    ) -> None:
        self._host = host
        self._problem = problem
        self._tabs = tabs
        self._compare = compare
        self._sweeps = sweeps
        self._opening = Opening(history, host)

    def outputs(self) -> list[Any]:
        compare, sweeps = self._compare, self._sweeps
        followed = [*controls.followed_parts(compare.controls), *sweep_actions.followed_parts(sweeps)]
        parts = [*compare.filled(), *sweeps.filled(), *followed, *self._opening.outputs()]
        return [*dict.fromkeys([self._problem, self._tabs, *parts])]

    async def follow_link(self, event: gr.EventData, request: gr.Request) -> dict[Any, Any]:
        """What the link opens. What is under way is followed, with its settings in the form; what has ended is
        opened in the history."""
        locale = visitor_locale(request)
        try:
            return {self._problem: "", **await self._opened(Link.of(event.query), request)}
        except PlaygroundError as error:
            return {self._problem: alert(error, locale)}

    async def watch_run(self, request: gr.Request) -> dict[Any, Any]:
        """The run that uses the engines, or was the last to; with its settings in the form, so that what stands
        above its result is what ran."""
        return await self._watched(self._host.latest, self._compare.controls.watch, request)

    async def watch_sweep(self, request: gr.Request) -> dict[Any, Any]:
        return await self._watched(self._host.latest_sweep, self._sweeps.watch, request)

    async def _watched(
        self, job: Comparison | SweepRun | None, button: gr.Button, request: gr.Request
    ) -> dict[Any, Any]:
        if job is None:
            return {button: gr.update(visible=False)}
        return {button: gr.update(visible=False), **await self._opened(Link(saved=job.id), request)}

    async def _opened(self, link: Link, request: gr.Request) -> dict[Any, Any]:
        tabs, compare, locale = self._tabs, self._compare, visitor_locale(request)
        if link.preset:
            if not presets.exists(link.preset):
                # A path is none of a visitor's affair.
                nearest = ", ".join(presets.names()[:3])
                raise InvalidInput("preset.missing", name=link.preset, nearest=nearest)
            preset = presets.load(link.preset)
            filled = compare_tab.filling(compare, preset, locale)
            filled |= {**sweep_tab.filling(self._sweeps, preset), compare.controls.player: ""}
            return {**filled, tabs: gr.update(selected="compare")}
        if link.recording:
            recorded = await READERS.run(recordings.load, link.recording)
            # What no preset fills in can't be run here.
            filled = self.filled(recorded, locale) if presets.is_shipped(as_preset(recorded)) else {}
            return {**filled, **self._playing(recorded, "recording", link.recording)}
        if link.compared:
            beside = await self._opening.compared(link.compared, locale)
            return {**beside, tabs: gr.update(selected="history")}
        job = self._host.followed(link.saved) or self._host.followed_sweep(link.saved)
        record = job.record if job else await READERS.run(settings_of, self._host, link.saved)
        if record is None:
            raise InvalidInput("kept.unknown", id=link.saved)
        if link.reuse:
            return self.filled(record, locale)
        imported = isinstance(record, Run) and record.mode == "imported"
        if (job is None or job.finished) and link.replay and not imported:
            return {**self.filled(record, locale), **self._playing(record, "run", link.saved)}
        if job is None or job.finished:
            return {**await self._opening.opened(link.saved, request), tabs: gr.update(selected="history")}
        own = self._host.may_stop(job, visitor_of(self._host.config, request))
        if isinstance(record, Sweep):
            return {**self.filled(record, locale), **sweep_actions.following(self._sweeps, record.id, own=own)}
        following = controls.following(compare.controls, record.id, running=True, own=own)
        return {**self.filled(record, locale), **following}

    def _playing(self, record: Run | Sweep, kind: str, name: str) -> dict[Any, Any]:
        """A run where runs are followed, a sweep where sweeps are."""
        if isinstance(record, Sweep):
            return {self._sweeps.player: follower.playing(kind, name), self._tabs: gr.update(selected="sweep")}
        playing = controls.playing(self._compare.controls, self._host, kind, name)
        return {**playing, self._tabs: gr.update(selected="compare")}

    def filled(self, record: Run | Sweep, locale: Locale) -> dict[Any, Any]:
        """Its settings in the forms, and the tab that it is of."""
        parts = (self._tabs, self._compare, self._sweeps)
        return history_actions.filling(record, self._host, *parts, locale)
