"""The parts of the page that follow a run or a sweep, or play one, and pass on what it sends."""

from __future__ import annotations

import json
import time

import gradio as gr

from playground.ui.shared import view


def build(place: str) -> gr.HTML:
    """The component, which shows nothing itself: others, with `live="PLACE-PART"`, take their parts from it. When
    what it follows has ended, it triggers `stop`. The page's address becomes that of what is followed."""
    return gr.HTML(
        html_template="<span hidden></span>",
        js_on_load=f"{view.asset('address.js')}\n{view.asset('follow.js')}",
        apply_default_css=False,
        elem_classes="follower",
        place=place,
    )


def following(record_id: str) -> str:
    """The component's value: a sweep that is resumed is followed again."""
    return json.dumps({"id": record_id, "since": time.time()})


def player(place: str) -> gr.HTML:
    """The component that plays what has ended to the same others, with its buttons; empty until then."""
    return gr.HTML(
        html_template='<div class="replay" hidden></div>',
        js_on_load=f"{view.asset('address.js')}\n{view.asset('replay.js')}",
        apply_default_css=False,
        elem_id=f"{place}-player",
        elem_classes="player",
        place=place,
    )


def playing(kind: str, name: str) -> str:
    """The player's value. `kind`: "recording" and its name, or "run" and its id."""
    return json.dumps({"kind": kind, "name": name})
