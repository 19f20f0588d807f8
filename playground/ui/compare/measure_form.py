"""The form of a measurement: prompts, load, what decides and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from playground import prompts
from playground.domain.errors import PlaygroundError
from playground.domain.limits import Limits
from playground.domain.spec.measurement import Measurement
from playground.i18n import Locale, say, say_message
from playground.presets import Preset
from playground.runs.checks import harness
from playground.ui.shared.labels import sentence, visitor_locale
from playground.ui.shared.message import FieldPlace

from .measure_values import CHECKS, CHOICES, GROUPS, HARNESS, OPEN, measurement_of, uploaded, values_of, visibility


@dataclass
class MeasureForm:
    """The components. `fields` holds those with a value, by name; a file's value is the path of what `upload`
    received, and `note` describes the file."""

    fields: dict[str, Any]
    upload: gr.UploadButton
    note: gr.HTML

    def outputs(self) -> list[Any]:
        """All that `updates` may change."""
        return [*self.fields.values(), self.upload, self.note]


def build(preset: Preset) -> MeasureForm:
    """The form, filled with the preset's measurement."""
    values = values_of(preset.measurement, preset.workload.objective)
    visible, fields = visibility(values), dict[str, Any]()
    for group, names in GROUPS.items():
        gr.Markdown(str(sentence(f"measure.{group}")), elem_classes="legend")
        with gr.Row(elem_classes="fields"):
            for name in names:
                fields[name] = _field(name, values[name], visible.get(name, name not in HARNESS or _has_harness()))
        if group == "sent":
            upload = gr.UploadButton(
                str(sentence("measure.upload")),
                file_types=list(prompts.SUFFIXES),
                size="sm",
                visible=visible["file"],
                elem_id="measure-upload",
            )
            note = gr.HTML(apply_default_css=False, elem_id="measure-note")
    return MeasureForm(fields, upload, note)


def _has_harness() -> bool:
    return harness.installed() is not None


def _field(name: str, value: Any, visible: bool) -> Any:
    if name == "file":
        return gr.Textbox(value, visible=False)
    common: dict[str, Any] = {
        "label": sentence(f"measure.{name}"),
        "visible": visible,
        "min_width": 170,
        "elem_id": f"measure-{name}",
    }
    if name in CHOICES:
        return gr.Dropdown(
            [(str(_choice(name, choice)), choice) for choice in CHOICES[name]], value=value, **common
        )
    if name in CHECKS:
        return gr.Checkbox(value, **common)
    if name == "tasks" or name in OPEN:
        return gr.Textbox(value, max_lines=1, **common)
    return gr.Number(value, **common)


def _choice(field: str, name: str) -> Any:
    """The label of one choice of a field."""
    if field == "objective":
        return sentence(f"verdict.by_{name}")
    if field == "prompts" and name in prompts.names():
        return sentence("measure.prompts_set", name=name, count=len(prompts.load(name)))
    return sentence(f"measure.{field}_{name}")


def wire(form: MeasureForm, limits: Limits) -> None:
    """Connect the events."""
    fields = form.fields
    choosers = {fields["prompts"], fields["kind"]}
    conditional = [fields[name] for name in visibility(dict.fromkeys(("kind", "prompts"))) if name != "file"]

    def on_choice(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return _visible(form, {name: values[fields[name]] for name in ("kind", "prompts")})

    def on_upload(path: str, request: gr.Request) -> tuple[str, str]:
        return look_at_upload(path, limits, visitor_locale(request))

    for chooser in choosers:
        chooser.input(
            on_choice, choosers, [*conditional, form.upload, form.note], show_progress="hidden", queue=False
        )
    form.upload.upload(on_upload, form.upload, [fields["file"], form.note], show_progress="minimal")


def look_at_upload(path: object, limits: Limits, locale: Locale) -> tuple[str, str]:
    """The path to read, empty if the file can't be read, and a sentence about its content."""
    try:
        file = uploaded(path)
        read = prompts.read(file, limits).read
    except PlaygroundError as error:
        return "", f'<p role="status" class="bad">{escape(say_message(error, locale))}</p>'
    assert read is not None
    text = say("measure.uploaded", locale, file=file.name, count=read.read)
    remarks = "".join(f"<li>{escape(say_message(remark, locale))}</li>" for remark in read.remarks)
    return str(file), f'<p role="status">{escape(text)}</p>' + (f"<ul>{remarks}</ul>" if remarks else "")


def _visible(form: MeasureForm, values: Mapping[str, Any]) -> dict[Any, Any]:
    visible = visibility(values)
    with_file = gr.update(visible=visible.pop("file"))
    return {
        **{form.fields[name]: gr.update(visible=shows) for name, shows in visible.items()},
        form.upload: with_file,
        form.note: with_file,
    }


def updates(form: MeasureForm, preset: Preset) -> dict[Any, Any]:
    """What to change so that the form shows the preset's measurement."""
    values = values_of(preset.measurement, preset.workload.objective)
    file = values["file"].rpartition("/")[2]
    changed = {form.fields[name]: value for name, value in values.items()}
    for part, update in _visible(form, values).items():
        value = f"<p>{escape(file)}</p>" if part is form.note else changed.get(part)
        changed[part] = update if part is form.upload else {**update, "value": value}
    return changed


def read(form: MeasureForm, values: Mapping[Any, Any], preset: Preset) -> tuple[Measurement, str]:
    """The measurement that was filled in, and its objective. Raises InvalidInput."""
    return measurement_of({name: values[field] for name, field in form.fields.items()}, preset)


def place_of(key: str) -> FieldPlace:
    """The place on the page of a field of the measurement."""
    return FieldPlace(f"#measure-{key} :is(input, textarea)", ("#measuring button.label-wrap",))
