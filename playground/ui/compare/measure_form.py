"""The form of a measurement: prompts, load, what decides and when it ends. One component for the lot."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import gradio as gr
from gradio.utils import get_upload_folder

from playground import prompts
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Message, Section
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.workload import Objective
from playground.domain.validation import ModelT, validate
from playground.i18n import LOCALES, Locale, say, say_message
from playground.presets import Preset, is_shipped
from playground.runs.checks import harness
from playground.ui.shared import view

PROMPTS = ("own", *prompts.names(), "file", "synthetic")
# Which fields belong to which kind of load.
LOADS = {
    "concurrency": ("concurrency",),
    "rate": ("requests_per_s", "arrivals", "concurrency"),
    "waves": ("concurrency",),
    "ramp": ("first", "last"),
}
ENDINGS = ("requests", "duration_s")
LIMITS = ("ttft_ms", "tpot_ms", "e2el_ms")
# Shown in another unit: the form's name of a field, and how much one of its units is in the measurement's own.
SCALED = {"target_width": ("width", 0.02), "budget_s": ("budget", 60.0)}
CHECKS = ("check_outputs", "check_accuracy")
# Shown where lm-evaluation-harness is installed.
HARNESS = ("tasks", "limit")
GROUPS = {
    "sent": ("prompts", "file", "input_tokens", "count"),
    "load": ("kind", "requests_per_s", "arrivals", "concurrency", "first", "last", *ENDINGS),
    "good": ("objective", *LIMITS),
    "end": ("width", "max_rounds", "budget", *CHECKS, *HARNESS),
}
CHOICES = {
    "prompts": PROMPTS,
    "kind": tuple(LOADS),
    "arrivals": ("poisson", "constant"),
    "objective": get_args(Objective),
}
# What a field that the measurement does not use starts with.
DEFAULTS = {
    "file": "",
    "input_tokens": "256",
    "count": "32",
    "concurrency": "1",
    "requests_per_s": "2",
    "arrivals": "poisson",
    "first": "1",
    "last": "8",
    "tasks": "",
    "limit": "100",
}
# A visitor names tasks, and no file of this machine.
TASK = re.compile(r"\w[\w.-]*(?<!\.yaml)(?<!\.yml)")


def build(preset: Preset) -> gr.HTML:
    """`value` is JSON in a string: field -> text."""
    unused = () if harness.installed() else HARNESS
    return gr.HTML(
        values(preset.measurement, preset.workload.objective),
        html_template='<div class="fields"></div>',
        js_on_load=view.asset("measure.js"),
        apply_default_css=False,
        elem_id="measurement",
        groups=[[name, [field for field in fields if field not in unused]] for name, fields in GROUPS.items()],
        choices=CHOICES,
        words=["tasks"],
        shown=_shown(),
        texts={locale: _texts(locale) for locale in LOCALES},
        server_functions=[look_at_upload],
    )


def _shown() -> dict[str, list[Any]]:
    """Field -> [the field it depends on, the values with which it is shown]."""
    by_load: dict[str, list[Any]] = {}
    for kind, fields in LOADS.items():
        for field in fields:
            by_load.setdefault(field, ["kind", []])[1].append(kind)
    synthetic = ["prompts", ["synthetic"]]
    return {**by_load, "file": ["prompts", ["file"]], "input_tokens": synthetic, "count": synthetic}


def _texts(locale: Locale) -> dict[str, str]:
    """What the component shows: of each group and field by its name, of each choice by `field.choice`."""
    fields = [field for group in GROUPS.values() for field in group]
    texts = {name: say(f"measure.{name}", locale) for name in (*GROUPS, *fields, "upload", "uploading")}
    for field in ("kind", "arrivals"):
        texts |= {f"{field}.{choice}": say(f"measure.{field}_{choice}", locale) for choice in CHOICES[field]}
    texts |= {f"objective.{name}": say(f"verdict.by_{name}", locale) for name in CHOICES["objective"]}
    for name in PROMPTS:
        known = name in prompts.names()
        texts[f"prompts.{name}"] = (
            say("measure.prompts_set", locale, name=name, count=len(prompts.load(name)))
            if known
            else say(f"measure.prompts_{name}", locale)
        )
    return texts


def look_at_upload(asked: object) -> dict[str, Any]:
    """What is in a file that was just uploaded, said to the visitor. `asked`: its path and the locale."""
    given = asked if isinstance(asked, dict) else {}
    locale: Locale = "zh-CN" if given.get("locale") == "zh-CN" else "en"
    try:
        path = _uploaded(given.get("path"))
        count = len(prompts.read(path))
    except PlaygroundError as error:
        return {"good": False, "text": say_message(error, locale)}
    return {"good": True, "text": say("measure.uploaded", locale, file=path.name, count=count)}


def _uploaded(path: object) -> Path:
    """Visitors may name what they uploaded, and no other file of this machine."""
    try:
        found = Path(path if isinstance(path, str) else "").resolve()
    except (OSError, ValueError) as error:
        # A name that no file can have.
        raise InvalidInput("measure.no_upload") from error
    if not found.is_relative_to(Path(get_upload_folder()).resolve()):
        raise InvalidInput("measure.no_upload")
    return found


def values(measurement: Measurement, objective: Objective) -> str:
    """What the form shows for a measurement."""
    shown = {
        "objective": objective,
        "width": f"{measurement.target_width / SCALED['target_width'][1]:.12g}",
        "budget": f"{measurement.budget_s / SCALED['budget_s'][1]:.12g}",
        "max_rounds": str(measurement.max_rounds),
        **{name: "true" if getattr(measurement, name) else "" for name in CHECKS},
    }
    if measurement.harness is not None:
        shown |= {"tasks": ", ".join(measurement.harness.tasks), "limit": _text(measurement.harness.limit)}
    own = {**measurement.limits.model_dump(), **measurement.profile.model_dump()}
    shown |= {name: _text(value) for name, value in own.items()}
    match measurement.prompts:
        case None:
            shown["prompts"] = "own"
        case SyntheticPrompts(input_tokens=tokens, count=count):
            shown |= {"prompts": "synthetic", "input_tokens": str(tokens), "count": str(count)}
        case name if name in prompts.names():
            shown["prompts"] = name
        case path:
            shown |= {"prompts": "file", "file": path}
    return json.dumps({**DEFAULTS, **shown})


def _text(value: float | str | None) -> str:
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def read(text: str, preset: Preset) -> tuple[Measurement, str]:
    """What was filled in, and by which figure sides are compared. InvalidInput names the field as the form does.

    `preset` is where the form came from.
    """
    given: dict[str, str] = {name: str(value).strip() for name, value in json.loads(text).items()}
    kind = given["kind"]
    used = (*LOADS.get(kind, ()), *ENDINGS)
    if not any(given.get(name) for name in ENDINGS):
        raise InvalidInput("measure.needs_end", where=Section.MEASUREMENT, key="requests")
    if kind == "ramp" and not given.get("requests"):
        raise InvalidInput("measure.ramp_needs_requests", where=Section.MEASUREMENT, key="requests")
    asked = {
        "prompts": _prompts(given, preset),
        "profile": {"kind": kind, **{name: given[name] for name in used if given.get(name)}},
        "limits": {name: given[name] for name in LIMITS if given.get(name)},
        "max_rounds": given["max_rounds"],
        **{name: bool(given[name]) for name in CHECKS},
        "harness": _harness(given, preset),
        **{name: _scaled(own, given[own], factor) for name, (own, factor) in SCALED.items()},
    }
    return _validated(Measurement, asked, given), given["objective"]


def _prompts(given: Mapping[str, str], preset: Preset) -> str | SyntheticPrompts | None:
    chosen = given["prompts"]
    if chosen == "synthetic":
        return _validated(SyntheticPrompts, {name: given[name] for name in ("input_tokens", "count")}, given)
    if chosen == "file":
        if not given["file"]:
            raise InvalidInput("measure.no_upload")
        trusted = is_shipped(preset) and given["file"] == preset.measurement.prompts
        return given["file"] if trusted else str(_uploaded(given["file"]))
    return chosen if chosen in prompts.names() else None


def _harness(given: Mapping[str, str], preset: Preset) -> dict[str, Any] | None:
    """What it is to ask; a shipped preset's own is kept as it is. Nothing where the page has no fields for it."""
    if not harness.installed():
        return None
    tasks = [task.strip() for task in given.get("tasks", "").split(",") if task.strip()]
    if not tasks:
        return None
    trusted = preset.measurement.harness if is_shipped(preset) else None
    own = trusted.tasks if trusted else ()
    if unfit := next((task for task in tasks if task not in own and not TASK.fullmatch(task)), None):
        raise InvalidInput("harness.only_names", where=Section.MEASUREMENT, key="tasks", task=unfit)
    return {"tasks": tasks, "limit": given["limit"] or None}


def _scaled(field: str, text: str, factor: float) -> float | str:
    """In the measurement's unit; as it is if it is no number, for the measurement to refuse."""
    try:
        return round(float(text) * factor, 8)
    except ValueError:
        return text


def _validated(model: type[ModelT], asked: Mapping[str, Any], given: Mapping[str, str]) -> ModelT:
    try:
        return validate(model, asked, where=Section.MEASUREMENT)
    except InvalidInput as error:
        key = str(error.params.get("key", "")).rpartition(".")[2]
        field, factor = SCALED.get(key, (key, None))
        if field not in given:
            raise
        detail = error.params.get("detail") if factor is None else Message("measure.out_of_range")
        name = Message(f"measure.{field}")
        raise InvalidInput(
            "measure.bad_field",
            where=Section.MEASUREMENT,
            key=field,
            field=name,
            value=given[field],
            detail=detail,
        ) from error
