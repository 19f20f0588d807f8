"""The form of one side's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Message
from playground.domain.spec.case import Side
from playground.domain.spec.difference import labelled
from playground.domain.spec.settings import Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS
from playground.domain.sweep.knobs import LETTERS
from playground.domain.validation import choices
from playground.engine import runtime
from playground.engine.kinds.kind import Kind
from playground.engine.kinds.table import kinds
from playground.load.endpoint import PATHS
from playground.models import folders
from playground.ui.shared import view
from playground.ui.shared.field_names import engine_name, field_of
from playground.ui.shared.labels import label
from playground.ui.shared.message import FieldPlace

from .side_values import lacking, side_of, values_of, visibility

# The ids of a side's tabs.
BASICS, KNOBS = "basics", "knobs"
# The button that opens the settings of all sides.
FOLD = "#sides button.label-wrap"


@dataclass
class SideForm:
    """The components of one side, which is called by its letter until it has a label. `column` holds them all;
    either `engine` or `endpoint` is visible. `fields` holds those with a value, by name; `notes` shows remarks
    about what was filled in; `kinds`: the engines that are not vLLM, by their runtimes."""

    letter: str
    column: gr.Column
    engine: gr.Tabs
    endpoint: gr.Column
    fields: dict[str, Any]
    pasted: gr.Textbox
    fill: gr.Button
    notes: gr.HTML
    kinds: Mapping[str, Kind]

    def outputs(self) -> list[Any]:
        """All that `updates` may change."""
        return [self.column, self.engine, self.endpoint, *self.fields.values(), self.notes]


class _Maker:
    """Makes the fields of one side: each with its value, and an id by its name."""

    def __init__(self, index: int, side: Side, kinds: Mapping[str, Kind]) -> None:
        self.index = index
        self.fields: dict[str, Any] = {}
        self._values = values = values_of(side)
        self.kind = kinds.get(values["runtime"])
        self.visible = visibility(values["method"], values["attached"], self.kind)

    def add(self, kind: Any, name: str, caption: str | None = None, **options: Any) -> None:
        options = {"visible": self.visible.get(name, True), "elem_id": f"side{self.index}-{name}", **options}
        self.fields[name] = kind(value=self._values[name], label=label(caption or name), **options)


def build(config: Config, index: int, side: Side, visible: bool) -> SideForm:
    """The form, filled with `side`."""
    engines = kinds(config)
    make = _Maker(index, side, engines)
    with gr.Column(visible=visible, min_width=280, elem_classes=["side-form", f"side-{index}"]) as column:
        make.add(gr.Textbox, "label", info=label("label_info"), placeholder=side.label, max_lines=1)
        with gr.Accordion(label("paste"), open=False):
            pasted = gr.Textbox(
                label=label("paste_text"),
                info=label("paste_info"),
                placeholder="vllm serve Qwen/Qwen2.5-7B-Instruct --max-num-seqs 64",
                lines=3,
                max_lines=12,
                elem_id=f"side{index}-pasted",
                elem_classes="takes-text",
            )
            fill = gr.Button(label("paste_fill"), size="sm", elem_id=f"side{index}-fill")
        notes = gr.HTML(apply_default_css=False, elem_id=f"side{index}-notes", elem_classes="side-notes")
        make.add(gr.Checkbox, "attached")
        with gr.Column(visible=make.visible["endpoint"]) as endpoint:
            make.add(gr.Textbox, "base_url", info=label("base_url_info"), max_lines=1)
            make.add(gr.Textbox, "model", "endpoint_model", max_lines=1)
            make.add(gr.Dropdown, "api", "endpoint_api", choices=list(PATHS))
        with gr.Tabs(visible=make.visible["engine"]) as engine:
            with gr.Tab(label("tab_basics"), id=BASICS, elem_id=f"side{index}-tab-{BASICS}"):
                _engine(make, config)
                _models(make, folders.known(config))
            with gr.Tab(label("tab_knobs"), id=KNOBS, elem_id=f"side{index}-tab-{KNOBS}"):
                _knobs(make, config)
    form = SideForm(LETTERS[index], column, engine, endpoint, make.fields, pasted, fill, notes, engines)
    attached, method, chosen_engine, knobs = (
        make.fields[name] for name in ("attached", "method", "runtime", "knobs")
    )
    places = [engine, endpoint, *(make.fields[name] for name in make.visible if name in make.fields)]

    def on_choice(values: Mapping[Any, Any]) -> dict[Any, Any]:
        kind = engines.get(values[chosen_engine])
        visible = visibility(values[method], values[attached], kind)
        holders = {"engine": engine, "endpoint": endpoint, **make.fields}
        shown = {holders[name]: gr.update(visible=shows) for name, shows in visible.items()}
        offered = gr.update(choices=_methods(kind, values[method]))
        return {**shown, method: offered, knobs: _knobs_update(values[knobs], kind)}

    inputs = {attached, method, chosen_engine, knobs}
    for chosen in (attached, method, chosen_engine):
        chosen.input(on_choice, inputs, [*places, method, knobs], show_progress="hidden", queue=False)
    return form


def _engine(make: _Maker, config: Config) -> None:
    names = runtime.names(config)
    make.add(gr.Dropdown, "runtime", choices=[(engine_name(name), name) for name in names], visible=len(names) > 1)


def _models(make: _Maker, offered: list[str]) -> None:
    make.add(gr.Dropdown, "target", choices=offered, info=label("target_info"), allow_custom_value=True)
    make.add(gr.Dropdown, "method", choices=_methods(make.kind, "off"))
    make.add(gr.Dropdown, "draft", choices=offered, allow_custom_value=True)
    make.add(gr.Number, "k", precision=0)
    with gr.Row():
        make.add(gr.Number, "lookup_min", precision=0)
        make.add(gr.Number, "lookup_max", precision=0)
    make.add(gr.Textbox, "more", info=label("more_info"))


def _knobs(make: _Maker, config: Config) -> None:
    # One component for all knobs. With a Gradio field for each of 22 on four sides, filling in a preset took two
    # to three times as long, and the page was a fifth larger.
    make.add(
        gr.HTML,
        "knobs",
        "knobs_info",
        html_template=f'<div class="knobs" id="side{make.index}-knobs"></div>',
        elem_id=None,
        js_on_load=view.asset("knobs.js"),
        apply_default_css=False,
        **_knob_fields(make.kind),
        show_label=True,
        container=True,
    )
    off = "" if config.extra_flags else label("extra_flags_off")
    make.add(gr.Textbox, "extra_flags", interactive=config.extra_flags, placeholder=off)
    make.add(gr.Checkbox, "trust_remote_code", visible=config.trust_remote_code)


def _methods(kind: Kind | None, method: str) -> list[str]:
    """The methods to choose from, and the one that is chosen."""
    return [name for name in SPECULATION_METHODS if kind is None or name in ("off", method, *kind.speculation)]


def _knob_fields(kind: Kind | None) -> dict[str, Any]:
    return {"fields": [(name, _choices(name)) for name in Knobs.model_fields], "lacking": lacking(kind)}


def _knobs_update(value: str, kind: Kind | None) -> dict[str, Any]:
    # What was never on screen keeps nothing but what an update brings.
    return gr.update(value=value, **_knob_fields(kind))


def _choices(knob: str) -> list[str] | None:
    """What a knob can be set to, or None for free text."""
    if "bool" in str(Knobs.model_fields[knob].annotation):
        return ["true", "false"]
    return choices(Knobs, knob)


def knobs_as_they_are(sides: Sequence[SideForm], values: Mapping[Any, Any]) -> dict[Any, Any]:
    """The value that keeps the knobs unchanged, for the outputs of an event that may change any side's fields.

    Gradio takes an output that is not returned for an update without a value. Before the knobs were first
    displayed, such an update leaves their component empty for good.
    """
    return {field: values[field] for field in (side.fields["knobs"] for side in sides)}


def updates(form: SideForm, side: Side | None, typed: str = "") -> dict[Any, Any]:
    """What to change so that the form shows `side`; None hides it. `typed`: the label, if it is not to follow the
    settings."""
    if side is None:
        return {form.column: gr.update(visible=False), form.fields["knobs"]: "{}"}
    values = values_of(side) | {"label": typed}
    kind = form.kinds.get(values["runtime"])
    visible = visibility(values["method"], values["attached"], kind)
    changed: dict[Any, Any] = {
        form.column: gr.update(visible=True),
        form.engine: gr.update(visible=visible["engine"]),
        form.endpoint: gr.update(visible=visible["endpoint"]),
        form.notes: "",
    }
    for name, field in form.fields.items():
        changed[field] = gr.update(value=values[name], visible=visible[name]) if name in visible else values[name]
    method = values["method"]
    changed[form.fields["method"]] = gr.update(value=method, choices=_methods(kind, method))
    changed[form.fields["knobs"]] = _knobs_update(values["knobs"], kind)
    return changed


def read(form: SideForm, values: Mapping[Any, Any]) -> tuple[Side, list[Message]]:
    """Frozen settings from the form's values, and a note on each old name. InvalidInput names side and key."""
    return side_of({name: values[field] for name, field in form.fields.items()}, form.letter)


def read_all(
    forms: Sequence[SideForm], values: Mapping[Any, Any], before: Sequence[Side]
) -> list[Side | PlaygroundError]:
    """All sides with their labels; the error in the place of one that can't be read. `before`: what the forms were
    filled from. They have no field for a side's own load profile, which stays."""
    sides: list[Side | PlaygroundError] = []
    for form, original in zip(forms, before, strict=True):
        try:
            side, _ = read(form, values)
        except InvalidInput as error:
            sides.append(error)
        else:
            name = typed_label(form, values) or original.label
            sides.append(side.model_copy(update={"label": name, "profile": original.profile}))
    readable = [side for side in sides if isinstance(side, Side)]
    if len(readable) < len(sides):
        return sides
    return [*labelled(readable, [typed_label(form, values) for form in forms], before)]


def typed_label(form: SideForm, values: Mapping[Any, Any]) -> str:
    """The label that was typed, or nothing: then it follows the settings."""
    return str(values[form.fields["label"]] or "").strip()


def place_of(index: int, key: str) -> FieldPlace:
    """The place on the page of a dotted key of one side's settings."""
    name = field_of(key)
    if name in ("label", "base_url", "model", "api"):
        return FieldPlace(f"#side{index}-{name} :is(input, textarea)", (FOLD,))
    on_knobs = name in ("knobs", "extra_flags", "trust_remote_code")
    folds = (FOLD, f"#side{index}-tab-{KNOBS if on_knobs else BASICS}-button")
    if name == "knobs":
        return FieldPlace(f'#side{index}-knobs [name="{key.removeprefix("knobs.")}"]', folds)
    return FieldPlace(f"#side{index}-{name} :is(input, textarea)", folds)
