"""The buttons that add a side, or speculation off on the same path, and remove the last one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.spec.case import LEAST_SIDES, MOST_SIDES, Side
from playground.runs.sides.off_same_path import off_same_path
from playground.ui.shared.form_origin import sides_of, with_count
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.message import alert
from playground.workers import CHECKS

from . import side_form
from .side_form import SideForm


@dataclass
class SideCount:
    """`same_path` adds a side that is off and works as the one that speculates; `message` says why not."""

    add: gr.Button
    remove: gr.Button
    same_path: gr.Button
    message: gr.HTML

    @property
    def buttons(self) -> list[gr.Button]:
        return [self.add, self.remove, self.same_path]


def build(count: int) -> SideCount:
    """`count`: how many sides there are."""
    with gr.Row():
        add = _button("add_side", count < MOST_SIDES)
        remove = _button("remove_side", count > LEAST_SIDES)
        same_path = _button("add_same_path", count < MOST_SIDES)
    return SideCount(add, remove, same_path, gr.HTML(apply_default_css=False, elem_id="same-path-message"))


def _button(name: str, usable: bool) -> gr.Button:
    return gr.Button(label(name), size="sm", min_width=140, interactive=usable, elem_id=name)


def updates(buttons: SideCount, count: int) -> dict[Any, Any]:
    return {
        buttons.add: gr.update(interactive=count < MOST_SIDES),
        buttons.remove: gr.update(interactive=count > LEAST_SIDES),
        buttons.same_path: gr.update(interactive=count < MOST_SIDES),
    }


def wire(buttons: SideCount, base: gr.Textbox, sides: Sequence[SideForm], config: Config) -> list[Any]:
    """Connect the events, and return them. `base`: what the forms were filled from, and how many are in use."""

    def on_add(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**side_form.knobs_as_they_are(sides, values), **added(buttons, base, sides, values)}

    def on_remove(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**side_form.knobs_as_they_are(sides, values), **removed(buttons, base, sides, values[base])}

    async def on_same_path(values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        same = side_form.knobs_as_they_are(sides, values)
        used = sides[: sides_of(values[base])]
        try:
            read = [side_form.read(side, values)[0] for side in used]
            extra = await CHECKS.run(off_same_path, config, read)
        except PlaygroundError as error:
            return {**same, buttons.message: alert(error, visitor_locale(request))}
        return {**same, buttons.message: "", **_one_more(buttons, base, sides, values, extra, typed=extra.label)}

    outputs = [base, *buttons.buttons, buttons.message, *(part for side in sides for part in side.outputs())]
    inputs: set[Any] = {base, *(field for side in sides for field in side.fields.values())}
    quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    return [
        buttons.add.click(on_add, inputs, outputs, **quiet),
        buttons.remove.click(on_remove, inputs, outputs, **quiet),
        buttons.same_path.click(on_same_path, inputs, outputs, **quiet),
    ]


def added(
    buttons: SideCount, base: gr.Textbox, sides: Sequence[SideForm], values: Mapping[Any, Any]
) -> dict[Any, Any]:
    """The updates for one more side, which copies the last one."""
    count = sides_of(values[base])
    # A second click may arrive before the button is off.
    if count == MOST_SIDES:
        return updates(buttons, count)
    return _one_more(buttons, base, sides, values, _last(sides[:count], values))


def _one_more(
    buttons: SideCount,
    base: gr.Textbox,
    sides: Sequence[SideForm],
    values: Mapping[Any, Any],
    side: Side,
    typed: str = "",
) -> dict[Any, Any]:
    count = sides_of(values[base])
    return {
        base: with_count(values[base], count + 1),
        **updates(buttons, count + 1),
        **side_form.updates(sides[count], side, typed),
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
