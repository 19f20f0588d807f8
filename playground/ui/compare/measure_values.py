"""A measurement as the fields of its form hold it, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from gradio.utils import get_upload_folder

from playground import prompts
from playground.domain.errors import InvalidInput
from playground.domain.message import Message, Section
from playground.domain.spec.load_profile import ENDINGS, PROFILES, profile_fields
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.workload import Objective
from playground.domain.validation import ModelT, validate
from playground.presets import Preset, is_shipped
from playground.runs.checks import harness

PROFILE_FIELDS = profile_fields()
LIMITS = ("ttft_ms", "tpot_ms", "e2el_ms")
PRICE = "price_per_hour"
CHECKS = ("check_outputs", "check_accuracy")
# Visible where lm-evaluation-harness is installed.
HARNESS = ("tasks", "limit")
GROUPS = {
    "sent": ("prompts", "file", "input_tokens", "count"),
    "load": ("kind", *(field.name for field in PROFILE_FIELDS), *ENDINGS),
    "good": ("objective", *LIMITS, PRICE),
    "end": ("width", "max_rounds", "budget", *CHECKS, *HARNESS),
}
CHOICES = {
    "prompts": ("own", *prompts.names(), "file", "synthetic"),
    "kind": tuple(PROFILES),
    **{field.name: field.choices for field in PROFILE_FIELDS if field.choices},
    "objective": get_args(Objective),
}
# Fields in another unit: the form's name of a field, and how much one of its units is in the measurement's own.
SCALED = {"target_width": ("width", 0.02), "budget_s": ("budget", 60.0)}
# The values of fields that the measurement does not use.
DEFAULTS: dict[str, Any] = {
    "file": "",
    "input_tokens": 256,
    "count": 32,
    **{field.name: field.initial for field in PROFILE_FIELDS},
    "tasks": "",
    "limit": "100",
}
# Numbers that may be left empty: an empty number field would show 0.
OPEN = (*ENDINGS, *LIMITS, PRICE, "limit")
# A visitor may name tasks, but no file of this machine.
TASK = re.compile(r"\w[\w.-]*(?<!\.yaml)(?<!\.yml)")


def visibility(values: Mapping[str, Any]) -> dict[str, bool]:
    """Which of the conditional fields are visible."""
    synthetic = values["prompts"] == "synthetic"
    visible = {field.name: values["kind"] in field.kinds for field in PROFILE_FIELDS}
    return {**visible, "file": values["prompts"] == "file", "input_tokens": synthetic, "count": synthetic}


def values_of(measurement: Measurement, objective: Objective) -> dict[str, Any]:
    """The value of each field for a measurement, by the field's name."""
    state = {
        **DEFAULTS,
        "objective": objective,
        **{name: getattr(measurement, name) for name in ("max_rounds", PRICE, *CHECKS)},
        **{name: round(getattr(measurement, key) / factor, 10) for key, (name, factor) in SCALED.items()},
        **measurement.limits.model_dump(),
        **measurement.profile.model_dump(),
    }
    if measurement.harness is not None:
        state |= {"tasks": ", ".join(measurement.harness.tasks), "limit": measurement.harness.limit}
    state |= {name: _text(state[name]) for name in OPEN}
    match measurement.prompts:
        case None:
            return {**state, "prompts": "own"}
        case SyntheticPrompts():
            return {**state, "prompts": "synthetic", **measurement.prompts.model_dump()}
        case name if name in prompts.names():
            return {**state, "prompts": name}
        case path:
            return {**state, "prompts": "file", "file": path}


def measurement_of(values: Mapping[str, Any], preset: Preset) -> tuple[Measurement, str]:
    """The measurement that was filled in, and its objective. InvalidInput names the field as the form does.
    `preset` is what the form was filled from."""
    texts = {name: _text(value) for name, value in values.items()}
    kind = texts["kind"]
    if not any(texts[name] for name in ENDINGS):
        raise InvalidInput("measure.needs_end", where=Section.MEASUREMENT, key="requests")
    if kind in PROFILES and PROFILES[kind].needs_requests and not texts["requests"]:
        raise InvalidInput(f"measure.{kind}_needs_requests", where=Section.MEASUREMENT, key="requests")
    fields = (field.name for field in PROFILE_FIELDS if kind in field.kinds)
    settings = {
        "prompts": _prompts(texts, preset),
        "profile": {"kind": kind, **_filled(texts, *fields, *ENDINGS)},
        "limits": _filled(texts, *LIMITS),
        "max_rounds": texts["max_rounds"],
        PRICE: texts[PRICE] or None,
        **{name: bool(values[name]) for name in CHECKS},
        "harness": _harness(texts, preset),
        **{key: _scaled(texts[name], factor) for key, (name, factor) in SCALED.items()},
    }
    return _validated(Measurement, settings, texts), texts["objective"]


def uploaded(path: object) -> Path:
    """The path of an uploaded file. Visitors may name what they uploaded, and no other file of this machine:
    InvalidInput."""
    try:
        resolved = Path(path if isinstance(path, str) else "").resolve()
    except (OSError, ValueError) as error:
        # A name that no file can have.
        raise InvalidInput("measure.no_upload") from error
    if not resolved.is_relative_to(Path(get_upload_folder()).resolve()):
        raise InvalidInput("measure.no_upload")
    return resolved


def _text(value: float | str | None) -> str:
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value).strip()


def _filled(texts: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: texts[name] for name in names if texts[name]}


def _prompts(texts: Mapping[str, str], preset: Preset) -> str | SyntheticPrompts | None:
    chosen = texts["prompts"]
    if chosen == "synthetic":
        return _validated(SyntheticPrompts, {name: texts[name] for name in ("input_tokens", "count")}, texts)
    if chosen == "file":
        if not texts["file"]:
            raise InvalidInput("measure.no_upload")
        trusted = is_shipped(preset) and texts["file"] == preset.measurement.prompts
        return texts["file"] if trusted else str(uploaded(texts["file"]))
    return chosen if chosen in prompts.names() else None


def _harness(texts: Mapping[str, str], preset: Preset) -> dict[str, Any] | None:
    """The harness plan; a shipped preset's own is kept as it is. None where the page has no fields for it."""
    if not harness.installed():
        return None
    tasks = [task.strip() for task in texts["tasks"].split(",") if task.strip()]
    if not tasks:
        return None
    trusted = preset.measurement.harness if is_shipped(preset) else None
    known = trusted.tasks if trusted else ()
    if unfit := next((task for task in tasks if task not in known and not TASK.fullmatch(task)), None):
        raise InvalidInput("harness.only_names", where=Section.MEASUREMENT, key="tasks", task=unfit)
    return {"tasks": tasks, "limit": texts["limit"] or None}


def _scaled(text: str, factor: float) -> float | str:
    """The number in the measurement's unit; unchanged if it is no number, so that the measurement refuses it."""
    try:
        return round(float(text) * factor, 8)
    except ValueError:
        return text


def _validated(model: type[ModelT], settings: Mapping[str, Any], texts: Mapping[str, str]) -> ModelT:
    try:
        return validate(model, settings, where=Section.MEASUREMENT)
    except InvalidInput as error:
        key = str(error.params.get("key", "")).rpartition(".")[2]
        field, factor = SCALED.get(key, (key, None))
        if field not in texts:
            raise
        raise InvalidInput(
            "measure.bad_field",
            where=Section.MEASUREMENT,
            key=field,
            field=Message(f"measure.{field}"),
            value=texts[field],
            detail=error.params.get("detail") if factor is None else Message("measure.out_of_range"),
        ) from error
