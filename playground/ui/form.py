"""The form of one side: settings in, settings out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from .. import models
from ..config import Config
from ..domain.errors import InvalidInput
from ..domain.settings import SPECULATION_METHODS, AttachedEndpoint, EngineSettings, Knobs
from ..domain.validation import choices, validate
from ..engine import runtime
from ..load.endpoint import PATHS
from ..presets import Side
from . import view
from .labels import label

METHODS = list(SPECULATION_METHODS)
DRAFTING = ("draft_model", "eagle", "eagle3")
LOOKUP = ("ngram", "ngram_gpu")
# Fields of the speculation that have a component of their own; the rest goes through the JSON box.
OWN_FIELDS = {"method", "model", "num_speculative_tokens", "prompt_lookup_min", "prompt_lookup_max"}


@dataclass
class SideForm:
    """The components of one side; `column` holds them all, of `engine` and `endpoint` one is shown."""

    column: gr.Column
    engine: gr.Tabs
    endpoint: gr.Column
    label: gr.Textbox
    attached: gr.Checkbox
    base_url: gr.Textbox
    model: gr.Textbox
    api: gr.Dropdown
    target: gr.Dropdown
    method: gr.Dropdown
    draft: gr.Dropdown
    k: gr.Number
    lookup_min: gr.Number
    lookup_max: gr.Number
    more: gr.Textbox
    runtime: gr.Dropdown
    extra_flags: gr.Textbox
    trust_remote_code: gr.Checkbox
    knobs: gr.HTML

    def components(self) -> list[gr.components.Component]:
        """All inputs, in a fixed order."""
        named = [self.label, self.attached, self.base_url, self.model, self.api]
        named += [self.target, self.method, self.draft, self.k, self.lookup_min, self.lookup_max]
        return [*named, self.more, self.runtime, self.extra_flags, self.trust_remote_code, self.knobs]

    def outputs(self) -> list[Any]:
        """All that `updates` may change."""
        return [self.column, self.engine, self.endpoint, *self.components()]


def build(config: Config, side: Side, visible: bool) -> SideForm:
    """The form, filled with `side`."""
    offered = models.known(config)
    values = _values(side)
    with gr.Column(visible=visible, min_width=280) as column:
        name = gr.Textbox(values["label"], label=label("label"), max_lines=1)
        attached = gr.Checkbox(values["attached"], label=label("attached"))
        with gr.Column(visible=values["attached"]) as endpoint:
            base_url = gr.Textbox(
                values["base_url"], label=label("base_url"), info=label("base_url_info"), max_lines=1
            )
            model = gr.Textbox(values["model"], label=label("endpoint_model"), max_lines=1)
            api = gr.Dropdown(list(PATHS), value=values["api"], label=label("endpoint_api"))
        with gr.Tabs(visible=not values["attached"]) as engine:
            with gr.Tab(label("tab_basics")):
                target = gr.Dropdown(
                    offered,
                    value=values["target"],
                    label=label("target"),
                    info=label("target_info"),
                    allow_custom_value=True,
                )
                method = gr.Dropdown(METHODS, value=values["method"], label=label("method"))
                draft = gr.Dropdown(
                    offered,
                    value=values["draft"],
                    label=label("draft"),
                    allow_custom_value=True,
                    visible=values["method"] in DRAFTING,
                )
                k = gr.Number(values["k"], precision=0, label=label("k"), visible=values["method"] != "off")
                with gr.Row():
                    on = values["method"] in LOOKUP
                    low = gr.Number(values["lookup_min"], precision=0, label=label("lookup_min"), visible=on)
                    high = gr.Number(values["lookup_max"], precision=0, label=label("lookup_max"), visible=on)
                more = gr.Textbox(
                    values["more"],
                    label=label("more"),
                    info=label("more_info"),
                    visible=values["method"] != "off",
                )
            with gr.Tab(label("tab_knobs")):
                knobs = gr.HTML(
                    values["knobs"],
                    html_template='<div class="knobs"></div>',
                    js_on_load=view.asset("knobs.js"),
                    apply_default_css=False,
                    fields=[(name, _choices(name)) for name in Knobs.model_fields],
                    label=label("knobs_info"),
                    show_label=True,
                    container=True,
                )
                runtimes = runtime.names(config)
                which = gr.Dropdown(
                    runtimes, value=values["runtime"], label=label("runtime"), visible=len(runtimes) > 1
                )
                flags = gr.Textbox(
                    values["extra_flags"],
                    label=label("extra_flags"),
                    interactive=config.extra_flags,
                    placeholder="" if config.extra_flags else label("extra_flags_off"),
                )
                trust = gr.Checkbox(
                    values["trust_remote_code"],
                    label=label("trust_remote_code"),
                    visible=config.trust_remote_code,
                )
    form = SideForm(
        column=column,
        engine=engine,
        endpoint=endpoint,
        label=name,
        attached=attached,
        base_url=base_url,
        model=model,
        api=api,
        target=target,
        method=method,
        draft=draft,
        k=k,
        lookup_min=low,
        lookup_max=high,
        more=more,
        runtime=which,
        extra_flags=flags,
        trust_remote_code=trust,
        knobs=knobs,
    )
    attached.input(_on_attached, attached, [engine, endpoint], show_progress="hidden", queue=False)
    method.input(_on_method, method, [draft, k, low, high, more], show_progress="hidden", queue=False)
    return form


def _choices(knob: str) -> list[str] | None:
    """What a knob can be set to, or None for free text."""
    if "bool" in str(Knobs.model_fields[knob].annotation):
        return ["true", "false"]
    return choices(Knobs, knob)


def _text(value: int | float | bool | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _on_attached(attached: bool) -> list[Any]:
    return [gr.update(visible=not attached), gr.update(visible=attached)]


def _on_method(method: str) -> list[Any]:
    speculates = method != "off"
    lookup = method in LOOKUP
    shown = (method in DRAFTING, speculates, lookup, lookup, speculates)
    return [gr.update(visible=visible) for visible in shown]


def _values(side: Side) -> dict[str, Any]:
    """What the components show for `side`, by component name."""
    settings, endpoint = side.engine, dict[str, Any]()
    if isinstance(settings, AttachedEndpoint):
        # The engine's fields are hidden, and hold what they begin with.
        settings, endpoint = EngineSettings(target=models.EMBEDDED), settings.model_dump()
    speculation = settings.speculation.model_dump(exclude_none=True, mode="json")
    more = {key: value for key, value in speculation.items() if key not in OWN_FIELDS}
    return {
        "label": side.label,
        "attached": bool(endpoint),
        "base_url": endpoint.get("base_url", ""),
        "model": endpoint.get("model", ""),
        "api": endpoint.get("api", "chat"),
        "target": settings.target,
        "method": speculation["method"],
        "draft": settings.draft or "",
        "k": speculation.get("num_speculative_tokens", 5),
        "lookup_min": speculation.get("prompt_lookup_min", 2),
        "lookup_max": speculation.get("prompt_lookup_max", 5),
        "more": json.dumps(more) if more else "",
        "runtime": settings.runtime,
        "extra_flags": shlex.join(settings.extra_flags),
        "trust_remote_code": settings.trust_remote_code,
        "knobs": json.dumps({name: _text(value) for name, value in settings.knobs.overrides().items()}),
    }


def updates(form: SideForm, side: Side | None) -> dict[Any, Any]:
    """What to change so that the form shows `side`; None hides it."""
    if side is None:
        return {form.column: gr.update(visible=False)}
    values = _values(side)
    method = values["method"]
    shown = dict(
        zip((form.draft, form.k, form.lookup_min, form.lookup_max, form.more), _on_method(method), strict=True)
    )
    engine, endpoint = _on_attached(values["attached"])
    changed: dict[Any, Any] = {
        form.column: gr.update(visible=True),
        form.engine: engine,
        form.endpoint: endpoint,
        form.label: values["label"],
        form.attached: values["attached"],
        form.base_url: values["base_url"],
        form.model: values["model"],
        form.api: values["api"],
        form.target: values["target"],
        form.method: method,
        form.runtime: values["runtime"],
        form.extra_flags: values["extra_flags"],
        form.trust_remote_code: values["trust_remote_code"],
        form.knobs: values["knobs"],
    }
    for component, name in (
        (form.draft, "draft"),
        (form.k, "k"),
        (form.lookup_min, "lookup_min"),
        (form.lookup_max, "lookup_max"),
        (form.more, "more"),
    ):
        changed[component] = gr.update(value=values[name], visible=shown[component]["visible"])
    return changed


def read(form: SideForm, given: Mapping[Any, Any]) -> Side:
    """Frozen settings from the form's values. Raises InvalidInput that names side and field."""
    name = str(given[form.label]).strip()
    if given[form.attached]:
        endpoint = {
            "base_url": (given[form.base_url] or "").strip(),
            "model": (given[form.model] or "").strip(),
            "api": given[form.api],
        }
        return Side(label=name or "?", engine=validate(AttachedEndpoint, endpoint, where=name or "?"))
    method = given[form.method]
    speculation: dict[str, Any] = {"method": method}
    if method != "off":
        speculation |= {"num_speculative_tokens": given[form.k], **_more(name, given[form.more])}
    if method in DRAFTING:
        speculation["model"] = (given[form.draft] or "").strip()
    if method in LOOKUP:
        speculation |= {"prompt_lookup_min": given[form.lookup_min], "prompt_lookup_max": given[form.lookup_max]}
    settings = {
        "runtime": given[form.runtime],
        "target": (given[form.target] or "").strip(),
        "speculation": speculation,
        "knobs": json.loads(given[form.knobs] or "{}"),
        "trust_remote_code": bool(given[form.trust_remote_code]),
        "extra_flags": _flags(name, given[form.extra_flags] or ""),
    }
    return Side(label=name or "?", engine=validate(EngineSettings, settings, where=name or "?"))


def _flags(side: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInput("ui.flags_bad", side=side, detail=str(error)) from error


def _more(side: str, text: str | None) -> dict[str, Any]:
    if not text or not text.strip():
        return {}
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise InvalidInput("ui.json_bad", side=side, detail=str(error)) from error
    if not isinstance(fields, dict):
        raise InvalidInput("ui.json_bad", side=side, detail=text[:80])
    return fields
