"""Converts one side's settings to the values of its form's fields, and back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.case import Side
from playground.domain.spec.settings import CARDS, AttachedEndpoint, EngineSettings, Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS
from playground.domain.validation import validate
from playground.domain.vllm_cli.old_names import modernised
from playground.engine.kinds.kind import Kind
from playground.models import folders
from playground.ui.shared.field_names import SPECULATION


def visibility(method: str, attached: bool, kind: Kind | None) -> dict[str, bool]:
    """Which of the conditional fields are visible. `kind`: the engine, if it is not vLLM."""
    fields = SPECULATION_METHODS[method].model_fields
    visible = {place: field in fields for field, place in SPECULATION.items() if field != "method"}
    if kind is not None:
        visible |= {"lookup_min": False, "lookup_max": False}
    vllm = kind is None
    more = {"more": method != "off" and vllm, "extra_flags": vllm}
    return {"engine": not attached, "endpoint": attached, **visible, **more}


def lacking(kind: Kind | None) -> list[str]:
    """The knobs that the engine does not have."""
    return (
        [] if kind is None else [name for name in Knobs.model_fields if name not in kind.knobs and name != CARDS]
    )


def values_of(side: Side) -> dict[str, Any]:
    """The value of each field for `side`, by the field's name; its label is no setting, and stays empty."""
    settings, endpoint = side.engine, dict[str, Any]()
    if isinstance(settings, AttachedEndpoint):
        # The engine's fields are hidden, and keep their initial values.
        settings, endpoint = EngineSettings(target=folders.EMBEDDED), settings.model_dump()
    speculation = settings.speculation.model_dump(exclude_none=True, mode="json")
    more = {key: value for key, value in speculation.items() if key not in SPECULATION}
    return {
        "label": "",
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
        "knobs": json.dumps({name: text_of(value) for name, value in settings.knobs.overrides().items()}),
    }


def text_of(value: int | float | bool | str) -> str:
    """A value as a knob's field holds it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def side_of(values: Mapping[str, Any], letter: str) -> tuple[Side, list[Message]]:
    """Frozen settings, and a note on each old name that was translated. InvalidInput names key and side, which is
    called by its letter where no label was typed."""
    name = str(values["label"] or "").strip() or letter
    if values["attached"]:
        endpoint = {
            "base_url": (values["base_url"] or "").strip(),
            "model": (values["model"] or "").strip(),
            "api": values["api"],
        }
        return Side(label=name, engine=validate(AttachedEndpoint, endpoint, where=name)), []
    settings, notes = modernised(
        {
            "runtime": values["runtime"],
            "target": (values["target"] or "").strip(),
            "speculation": _speculation(name, values),
            "knobs": json.loads(values["knobs"] or "{}"),
            "trust_remote_code": bool(values["trust_remote_code"]),
            "extra_flags": _flags(name, values["extra_flags"] or ""),
        },
        where=name,
    )
    return Side(label=name, engine=validate(EngineSettings, settings, where=name)), notes


def _speculation(side: str, values: Mapping[str, Any]) -> dict[str, Any]:
    method = values["method"]
    known = SPECULATION_METHODS[method].model_fields
    fields: dict[str, Any] = {"method": method}
    if "num_speculative_tokens" in known:
        fields |= {"num_speculative_tokens": values["k"], **more_fields(side, values["more"])}
    if "model" in known:
        fields["model"] = (values["draft"] or "").strip()
    if "prompt_lookup_min" in known:
        fields |= {"prompt_lookup_min": values["lookup_min"], "prompt_lookup_max": values["lookup_max"]}
    return fields


def _flags(side: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise InvalidInput("ui.flags_bad", side=side, key="extra_flags", value=text[:60]) from None


def more_fields(side: str, text: str | None) -> dict[str, Any]:
    """Raises InvalidInput for what is no JSON object."""
    if not text or not text.strip():
        return {}
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise InvalidInput("ui.json_bad", side=side, key="speculation.more", value=text[:60])
    return fields
