"""The part of the page that follows a run or a sweep, and passes on what it sends."""

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
