"""Loads the settings of an opened run or sweep into the page, or repeats a run."""

from __future__ import annotations

from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.record import Sweep
from playground.engine import runtime
from playground.i18n import Locale, say
from playground.presets import Preset
from playground.runs.host import Host
from playground.store import READERS
from playground.ui.compare import controls
from playground.ui.compare import tab as compare_tab
from playground.ui.compare.paste_box import allowed
from playground.ui.compare.tab import CompareTab
from playground.ui.shared.form_origin import as_preset, settings_of, stored
from playground.ui.shared.labels import visitor_locale
from playground.ui.shared.message import alert
from playground.ui.shared.visitor import visitor_of
from playground.ui.sweep import tab as sweep_tab
from playground.ui.sweep.tab import SweepTab
from playground.workers import FORMS


def wire(
    actions: gr.HTML,
    problem: gr.HTML,
    host: Host,
    tabs: gr.Tabs,
    compare: CompareTab,
    sweeps: SweepTab,
) -> None:
    """Connect the events: each loads the settings, and selects the tab that shows them; `submit` also starts the
    run again. `problem` says why it can't."""

    async def load(event: gr.EventData, request: gr.Request) -> Any:
        try:
            record = await READERS.run(settings_of, host, str(event.run))
            if record is None:
                return gr.skip()
            return filling(record, host, tabs, compare, sweeps, visitor_locale(request))
        except PlaygroundError as error:
            return {problem: alert(error, visitor_locale(request))}

    async def repeat(event: gr.EventData, request: gr.Request) -> Any:
        """From the record, not from the form, which may lack what this host does not allow on the page."""
        locale = visitor_locale(request)
        try:
            host.open()
            record = await READERS.run(stored, host, str(event.run))
            if not isinstance(record, Run):
                raise InvalidInput("kept.unknown", id=str(event.run))
            comparison = await FORMS.run(host.repetition, record)
            await host.start(comparison, say("host.page", locale), owner=visitor_of(host.config, request))
        except PlaygroundError as error:
            return {problem: alert(error, locale)}
        filled = filling(record, host, tabs, compare, sweeps, locale)
        return {**filled, problem: "", **controls.following(compare.controls, comparison.id, running=True)}

    outputs = [problem, tabs, *compare.filled(), *sweeps.filled()]
    actions.click(load, None, outputs, show_progress="hidden", concurrency_limit=None)
    followed = [*dict.fromkeys([*outputs, *controls.followed_parts(compare.controls)])]
    actions.submit(
        repeat, None, followed, show_progress="minimal", show_progress_on=problem, concurrency_limit=None
    )


def filling(
    record: Run | Sweep,
    host: Host,
    tabs: gr.Tabs,
    compare: CompareTab,
    sweeps: SweepTab,
    locale: Locale,
) -> dict[Any, Any]:
    """The updates that load the settings of a run or sweep, and select the tab that shows them."""
    preset = allowed_here(host.config, as_preset(record))
    filled = compare_tab.filling(compare, preset, locale)
    if isinstance(record, Sweep):
        filled |= sweep_tab.filling(sweeps, preset)
    return {**filled, tabs: gr.update(selected="sweep" if isinstance(record, Sweep) else "compare")}


def allowed_here(config: Config, preset: Preset) -> Preset:
    """Remove the settings that this host does not allow on the page: its form could neither show nor clear them.
    The notes name them."""
    sides, notes = list[Side](), list(preset.notes)
    for side in preset.sides:
        if isinstance(side.engine, EngineSettings):
            name = side.engine.runtime
            usable = name if name in runtime.names(config) else runtime.DEFAULT
            engine, changes = allowed(config, side.engine, usable)
            if usable != name:
                changes.append(Message("kept.no_runtime", {"side": side.label, "runtime": name}))
            # Only a change is worth a note here.
            notes += changes if engine != side.engine else []
            side = side.model_copy(update={"engine": engine})
        sides.append(side)
    return preset.with_notes(notes).model_copy(update={"sides": tuple(sides)})
