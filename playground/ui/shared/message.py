"""Shows an error on the page: under the buttons, and at the field it is about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import zip_longest

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.i18n import Locale, say, say_message

from . import field_names, view


@dataclass(frozen=True)
class FieldPlace:
    """Selectors of a field on the page, and of what unfolds it, outermost first."""

    field: str
    folds: tuple[str, ...] = ()


def build() -> gr.HTML:
    """The component under the buttons. Its script also shows the message at the field that it names, and lets text
    files be dropped on fields."""
    return gr.HTML(
        html_template='<div class="text">${value}</div>',
        js_on_load=f"{view.asset('place.js')}\n{view.asset('message.js')}\n{view.asset('drop.js')}",
        apply_default_css=False,
        elem_id="message",
    )


def alerts(error: PlaygroundError, locale: Locale, places: Sequence[FieldPlace | None] = ()) -> str:
    """The error and what else is wrong, each with the field that it is about, where that is known."""
    pairs = zip_longest(error.all, places[: len(error.all)])
    return "".join(alert(problem, locale, place) for problem, place in pairs)


def alert(error: PlaygroundError | Message, locale: Locale, place: FieldPlace | None = None) -> str:
    """An error as the page shows it, which calls fields as the form does. `place`: the field that it is about."""
    if key := error.params.get("key"):
        error = Message(error.message_id, {**error.params, "key": field_names.with_vllm_name(str(key), locale)})
    at = f' data-at="{escape(json.dumps(asdict(place)))}"' if place else ""
    return f'<div class="alert" role="alert"{at}><p>{escape(say_message(error, locale))}</p></div>'


def notes_html(notes: Sequence[Message], locale: Locale, *, done: bool) -> str:
    """The notes as a list."""
    first = f"<p>{escape(say('paste.done', locale))}</p>" if done else ""
    items = "".join(f"<li>{escape(say_message(note, locale))}</li>" for note in notes)
    return f'<div role="status">{first}<ul>{items}</ul></div>' if items else f'<div role="status">{first}</div>'
