"""The buttons beside a failed side: each changes one field of that side's form, and starts nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

import gradio as gr

from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.record.run import Run
from playground.domain.spec.change import Change
from playground.engine.failures.remedies import change_label, remedy_of
from playground.i18n import say, say_message
from playground.runs.host import Host
from playground.store import READERS
from playground.ui.shared.field_names import field_of
from playground.ui.shared.form_origin import stored
from playground.ui.shared.labels import visitor_locale
from playground.ui.shared.message import alert

from . import side_form
from .side_form import SideForm
from .side_values import more_fields, text_of, visibility


def wire(panes: gr.HTML, sides: list[SideForm], settings: gr.Accordion, message: gr.HTML, host: Host) -> None:
    """Connect the event. A click sends the run, the side's index and the change's; the change is looked up
    here."""

    async def apply(values: Mapping[Any, Any], event: gr.EventData, request: gr.Request) -> Any:
        locale = visitor_locale(request)
        followed = host.followed(event.run)
        same = side_form.knobs_as_they_are(sides, values)
        try:
            run = followed.run if followed else await READERS.run(stored, host, str(event.run))
        except PlaygroundError as error:
            return {**same, message: alert(error, locale)}
        if not isinstance(run, Run) or (remedy := remedy_of(run.sides[event.side], run.machine)) is None:
            return same
        change = remedy.changes[event.change]
        try:
            edited = edits(sides[event.side], values, change)
        except InvalidInput as error:
            return {**same, message: alert(error, locale)}
        label = say_message(change_label(change), locale)
        sentence = say("change.made", locale, side=run.sides[event.side].label, change=label)
        done = f'<p role="status">{escape(sentence)}</p>'
        return {**same, message: done, settings: gr.update(open=True), **edited}

    inputs: set[Any] = {part for side in sides for part in side.fields.values()}
    outputs = [message, settings, *(part for side in sides for part in side.outputs())]
    panes.click(apply, inputs, outputs, show_progress="hidden", concurrency_limit=None)


def edits(side: SideForm, values: Mapping[Any, Any], change: Change) -> dict[Any, Any]:
    """The updates that put this change into the form. Raises InvalidInput where a field that should hold JSON does
    not."""
    fields = side.fields
    if change.key in ("speculation", "speculation.method"):
        kind = side.kinds.get(values[fields["runtime"]])
        visible = visibility(str(change.value), bool(values[fields["attached"]]), kind)
        changed = {field: gr.update(visible=visible[name]) for name, field in fields.items() if name in visible}
        return {fields["method"]: change.value, **changed, side.engine: gr.update(selected=side_form.BASICS)}
    field, (section, _, name) = field_of(change.key), change.key.partition(".")
    value: object = change.value
    if section == "knobs":
        knobs = _replaced(
            json.loads(values[fields["knobs"]] or "{}"), name, change.value and text_of(change.value)
        )
        return {fields["knobs"]: json.dumps(knobs), side.engine: gr.update(selected=side_form.KNOBS)}
    if field == "more":
        more = _replaced(more_fields(values[fields["label"]], values[fields["more"]]), name, change.value)
        value = json.dumps(more) if more else ""
    return {fields[field]: value, side.engine: gr.update(selected=side_form.BASICS)}


def _replaced(fields: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    rest = {key: setting for key, setting in fields.items() if key != name}
    return rest if value is None else {**rest, name: value}
