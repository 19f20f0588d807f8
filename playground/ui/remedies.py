"""The buttons beside a failed side: each changes one field of that side's form, and starts nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from html import escape
from typing import Any

import gradio as gr

from ..domain.changes import Change
from ..domain.errors import InvalidInput
from ..domain.remedies import change_label, remedy_of
from ..host import Host
from ..text import say, say_problem
from . import form
from .form import SideForm
from .labels import visitor_locale
from .runs import alert


def wire(panes: gr.HTML, sides: list[SideForm], settings: gr.Accordion, message: gr.HTML, host: Host) -> None:
    """A click carries the run, the side's index and the change's: what it changes is looked up here."""

    async def apply(given: Mapping[Any, Any], event: gr.EventData, request: gr.Request) -> dict[Any, Any]:
        locale = visitor_locale(request)
        followed = host.followed(event.run)
        run = followed.run if followed else await asyncio.to_thread(host.history.get, event.run)
        if run is None or (remedy := remedy_of(run.sides[event.side])) is None:
            return {}
        change = remedy.changes[event.change]
        try:
            edited = edits(sides[event.side], given, change)
        except InvalidInput as error:
            return {message: alert(error, locale)}
        shown = say_problem(change_label(change), locale)
        made = say("change.made", locale, side=run.sides[event.side].label, change=shown)
        return {message: f'<p role="status">{escape(made)}</p>', settings: gr.update(open=True), **edited}

    inputs: set[Any] = {part for side in sides for part in side.components()}
    outputs = [message, settings, *(part for side in sides for part in side.outputs())]
    panes.click(apply, inputs, outputs, show_progress="hidden", concurrency_limit=None)


def edits(side: SideForm, given: Mapping[Any, Any], change: Change) -> dict[Any, Any]:
    """What to change so that the form says the same with this change.

    Raises InvalidInput where a field that should hold JSON does not.
    """
    if change.key in ("speculation", "speculation.method"):
        fields = (side.draft, side.k, side.lookup_min, side.lookup_max, side.more)
        shown = dict(zip(fields, form.on_method(str(change.value)), strict=True))
        return {side.method: change.value, **shown, side.engine: gr.update(selected=form.BASICS)}
    section, _, name = change.key.partition(".")
    own = {"model": side.draft, "num_speculative_tokens": side.k}
    own |= {"prompt_lookup_min": side.lookup_min, "prompt_lookup_max": side.lookup_max}
    if name in own:
        return {own[name]: change.value, side.engine: gr.update(selected=form.BASICS)}
    if section == "knobs":
        knobs = _replaced(json.loads(given[side.knobs] or "{}"), name, change.value and form.text_of(change.value))
        return {side.knobs: json.dumps(knobs), side.engine: gr.update(selected=form.KNOBS)}
    more = _replaced(form.more_fields(given[side.label], given[side.more]), name, change.value)
    return {side.more: json.dumps(more) if more else "", side.engine: gr.update(selected=form.BASICS)}


def _replaced(fields: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    rest = {key: kept for key, kept in fields.items() if key != name}
    return rest if value is None else {**rest, name: value}
