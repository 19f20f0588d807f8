"""The buttons that add a side and remove the last one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground import presets
from playground.domain.errors import InvalidInput
from playground.domain.spec.case import LEAST_SIDES, MOST_SIDES, Side
from playground.ui.shared.form_origin import sides_of, with_count
from playground.ui.shared.labels import label

from . import side_form
from .side_form import SideForm


@dataclass
class SideCount:
    add: gr.Button
    remove: gr.Button

    @property
    def buttons(self) -> list[gr.Button]:
        return [self.add, self.remove]


def build(count: int) -> SideCount:
    """`count`: how many sides there are."""
    with gr.Row():
        add = _button("add_side", count < MOST_SIDES)
        remove = _button("remove_side", count > LEAST_SIDES)
    return SideCount(add, remove)


def _button(name: str, usable: bool) -> gr.Button:
    return gr.Button(label(name), size="sm", min_width=140, interactive=usable, elem_id=name)


def updates(buttons: SideCount, count: int) -> dict[Any, Any]:
    return {
        buttons.add: gr.update(interactive=count < MOST_SIDES),
        buttons.remove: gr.update(interactive=count > LEAST_SIDES),
    }


def wire(buttons: SideCount, base: gr.Textbox, sides: Sequence[SideForm]) -> list[Any]:
    """Connect the events, and return them. `base`: what the forms were filled from, and how many are in use."""

    def on_add(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**side_form.knobs_as_they_are(sides, values), **added(buttons, base, sides, values)}

    def on_remove(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**side_form.knobs_as_they_are(sides, values), **removed(buttons, base, sides, values[base])}

    outputs = [base, buttons.add, buttons.remove, *(part for side in sides for part in side.outputs())]
    inputs: set[Any] = {base, *(field for side in sides for field in side.fields.values())}
    quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    return [
        buttons.add.click(on_add, inputs, outputs, **quiet),
        buttons.remove.click(on_remove, inputs, outputs, **quiet),
    ]


def added(
    buttons: SideCount, base: gr.Textbox, sides: Sequence[SideForm], values: Mapping[Any, Any]
) -> dict[Any, Any]:
    """The updates for one more side, which copies the last one."""
    count = sides_of(values[base])
    # A second click may arrive before the button is off.
    if count == MOST_SIDES:
        return updates(buttons, count)
    side = _last(sides[:count], values)
    return {
        base: with_count(values[base], count + 1),
        **updates(buttons, count + 1),
        **side_form.updates(sides[count], side),
    }


def removed(buttons: SideCount, base: gr.Textbox, sides: Sequence[SideForm], text: str) -> dict[Any, Any]:
    """The updates for one side less."""
    count = sides_of(text)
    if count == LEAST_SIDES:
        return updates(buttons, count)
    return {
        base: with_count(text, count - 1),
        **updates(buttons, count - 1),
        **side_form.updates(sides[count - 1], None),
    }


def _last(sides: Sequence[SideForm], values: Mapping[Any, Any]) -> Side:
    """The last side that can be read."""
    for side in reversed(sides):
        with contextlib.suppress(InvalidInput):
            return side_form.read(side, values)[0]
    return presets.load(presets.EMBEDDED).sides[0]
