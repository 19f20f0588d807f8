"""Fills a side's fields from a pasted command line, or from old names in its extra flags, and explains each
change."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.vllm_cli import paste
from playground.i18n import Locale, say, say_message
from playground.runs.host import Host
from playground.ui.shared.form_origin import filled_from
from playground.ui.shared.labels import visitor_locale
from playground.ui.shared.message import alert

from . import side_form
from .side_form import SideForm


def wire(sides: Sequence[SideForm], base: gr.Textbox, host: Host) -> None:
    """Connect the events. `base`: what the forms were filled from."""
    for index in range(len(sides)):
        _wire(index, sides, base, host)


def _wire(index: int, sides: Sequence[SideForm], base: gr.Textbox, host: Host) -> None:
    side = sides[index]

    def on_fill(values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        def filled() -> tuple[Side, Sequence[Message]]:
            text = values[side.pasted] or ""
            host.config.limits.check("settings_characters", len(text))
            pasted = paste.read(text)
            settings, notes = allowed(host.config, pasted.settings, values[side.fields["runtime"]])
            labels = [str(values[form.fields["label"]]).strip() or "?" for form in sides]
            label = renamed(labels, index, filled_from(host, values[base]).sides, settings)
            return Side(label=label, engine=settings), [*pasted.notes, *notes]

        return _changed(side, filled, visitor_locale(request), done=True)

    def on_flags(values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return _changed(side, lambda: side_form.read(side, values), visitor_locale(request), done=False)

    fields = set(side.fields.values())
    quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    labels = {form.fields["label"] for form in sides}
    # An update before the knobs were first displayed would leave their component empty for good.
    mounted = side.fill.click(lambda: gr.update(selected=side_form.KNOBS), None, side.engine, **quiet)
    mounted.then(on_fill, {side.pasted, base, *labels, *fields}, side.outputs(), **quiet)
    side.fields["extra_flags"].blur(on_flags, fields, side.outputs(), **quiet)


def renamed(labels: Sequence[str], index: int, preset: Sequence[Side], settings: EngineSettings) -> str:
    """The label of a side with these settings: a typed label is kept, while a preset's would mislead."""
    label = labels[index]
    if label != preset[index].label or settings == preset[index].engine:
        return label
    k = settings.speculation.model_dump().get("num_speculative_tokens")
    names = {True: settings.speculation.method, False: "speculation off", None: "speculation"}
    method = names[settings.speculates]
    label = f"{method}, k = {k}" if k else method
    others = [*labels[:index], *labels[index + 1 : len(preset)]]
    return f"{label} ({index + 1})" if label in others else label


def allowed(config: Config, settings: EngineSettings, runtime: str) -> tuple[EngineSettings, list[Message]]:
    """The part of the pasted settings that this host allows, in the side's own runtime; a note on what was left
    out."""
    update: dict[str, Any] = {"runtime": runtime}
    notes = list[Message]()
    flags: dict[str, object] = {"flags": shlex.join(settings.extra_flags)}
    if settings.extra_flags and config.extra_flags:
        notes.append(Message("paste.extra", flags))
    elif settings.extra_flags:
        update["extra_flags"] = ()
        notes.append(Message("paste.extra_off", flags))
    if settings.trust_remote_code and not config.trust_remote_code:
        update["trust_remote_code"] = False
        notes.append(Message("paste.remote_code_off"))
    return settings.model_copy(update=update), notes


def _changed(
    side: SideForm, read: Callable[[], tuple[Side, Sequence[Message]]], locale: Locale, *, done: bool
) -> dict[Any, Any]:
    """What the form shows after a change. On an error all that was typed stays as it is."""
    try:
        filled, notes = read()
    except InvalidInput as error:
        return {side.notes: alert(error, locale)}
    if not notes and not done:
        return {side.notes: ""}
    return {**side_form.updates(side, filled), side.notes: listed(notes, locale, done=done)}


def listed(notes: Sequence[Message], locale: Locale, *, done: bool) -> str:
    """The notes as a list."""
    first = f"<p>{escape(say('paste.done', locale))}</p>" if done else ""
    items = "".join(f"<li>{escape(say_message(note, locale))}</li>" for note in notes)
    return f'<div role="status">{first}<ul>{items}</ul></div>' if items else f'<div role="status">{first}</div>'
