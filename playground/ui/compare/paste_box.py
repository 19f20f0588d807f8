"""Fills a side's fields from a pasted command line, or from old names in its extra flags, and explains each
change."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.vllm_cli import paste
from playground.i18n import Locale
from playground.ui.shared.labels import visitor_locale
from playground.ui.shared.message import alert, notes_html

from . import side_form
from .side_form import SideForm


def wire(sides: Sequence[SideForm], config: Config) -> None:
    """Connect the events."""
    for side in sides:
        _wire(side, config)


def _wire(side: SideForm, config: Config) -> None:
    def on_fill(values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        def filled() -> tuple[Side, Sequence[Message]]:
            text = values[side.pasted] or ""
            config.limits.check("settings_characters", len(text))
            pasted = paste.read(text)
            settings, notes = allowed(config, pasted.settings, values[side.fields["runtime"]])
            return Side(label=side.letter, engine=settings), [*pasted.notes, *notes]

        return _changed(side, values, filled, visitor_locale(request), done=True)

    def on_flags(values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        locale = visitor_locale(request)
        return _changed(side, values, lambda: side_form.read(side, values), locale, done=False)

    fields = set(side.fields.values())
    quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    # An update before the knobs were first displayed would leave their component empty for good.
    mounted = side.fill.click(lambda: gr.update(selected=side_form.KNOBS), None, side.engine, **quiet)
    mounted.then(on_fill, {side.pasted, *fields}, side.outputs(), **quiet)
    side.fields["extra_flags"].blur(on_flags, fields, side.outputs(), **quiet)


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
    side: SideForm,
    values: Mapping[Any, Any],
    read: Callable[[], tuple[Side, Sequence[Message]]],
    locale: Locale,
    *,
    done: bool,
) -> dict[Any, Any]:
    """What the form shows after a change. On an error all that was typed stays as it is."""
    try:
        filled, notes = read()
    except InvalidInput as error:
        return {side.notes: alert(error, locale)}
    if not notes and not done:
        return {side.notes: ""}
    return {
        **side_form.updates(side, filled, side_form.typed_label(side, values)),
        side.notes: notes_html(notes, locale, done=done),
    }
