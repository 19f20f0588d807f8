"""The buttons that add a side and take the last one away."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ..domain.errors import InvalidInput
from ..domain.sides import LEAST_SIDES, MOST_SIDES, Side
from ..presets import Preset
from . import form
from .form import SideForm
from .labels import label


@dataclass
class SideCount:
    add: gr.Button
    remove: gr.Button


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


def wire(buttons: SideCount, base: gr.State, sides: Sequence[SideForm]) -> None:
    """`base`: what the forms were filled from; it knows how many of them count."""

    def on_add(given: Mapping[Any, Any]) -> dict[Any, Any]:
        return added(buttons, base, sides, given)

    def on_remove(own: Preset) -> dict[Any, Any]:
        return removed(buttons, base, sides, own)

    outputs = [base, buttons.add, buttons.remove, *(part for side in sides for part in side.outputs())]
    inputs: set[Any] = {base, *(field for side in sides for field in side.fields.values())}
    shown: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    buttons.add.click(on_add, inputs, outputs, **shown)
    buttons.remove.click(on_remove, base, outputs, **shown)


def added(
    buttons: SideCount, base: gr.State, sides: Sequence[SideForm], given: Mapping[Any, Any]
) -> dict[Any, Any]:
    """What to change for one more side: what the last one holds."""
    own: Preset = given[base]
    if len(own.sides) == MOST_SIDES:
        return {}
    side = _copy_of_last(own, sides, given)
    now = own.model_copy(update={"sides": (*own.sides, side)})
    return {base: now, **updates(buttons, len(now.sides)), **form.updates(sides[len(own.sides)], side)}


def removed(buttons: SideCount, base: gr.State, sides: Sequence[SideForm], own: Preset) -> dict[Any, Any]:
    """What to change for one side less."""
    if len(own.sides) == LEAST_SIDES:
        return {}
    now = own.model_copy(update={"sides": own.sides[:-1]})
    return {base: now, **updates(buttons, len(now.sides)), **form.updates(sides[len(now.sides)], None)}


def _copy_of_last(own: Preset, sides: Sequence[SideForm], given: Mapping[Any, Any]) -> Side:
    """As it was typed, if that can be read, under a name of its own."""
    count = len(own.sides)
    try:
        last, _ = form.read(sides[count - 1], given)
    except InvalidInput:
        last = own.sides[-1]
    labels = {str(given[side.fields["label"]]).strip() for side in sides[:count]}
    stem = re.sub(r" \(\d\)$", "", last.label)
    free = (f"{stem} ({number})" for number in range(2, MOST_SIDES + 2))
    label = next(name for name in free if name not in labels)
    return last.model_copy(update={"label": label, "profile": own.sides[-1].profile})
