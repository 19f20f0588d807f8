"""What sides differ in, and the label of a side that nobody named: both follow from the settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from .case import Side
from .change import Value
from .engines import TITLES
from .settings import AttachedEndpoint

# A dotted key of a side -> the value on each side; None: the engine's own default, or nothing of that name.
Difference = dict[str, tuple[Value, ...]]
METHOD, K = "speculation.method", "speculation.num_speculative_tokens"
DRAFT = "speculation.model"
METHODS = {
    "off": "Speculation off",
    "ngram": "n-gram",
    "ngram_gpu": "n-gram (GPU)",
    "suffix": "Suffix",
    "eagle": "EAGLE",
    "eagle3": "EAGLE-3",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "mtp": "MTP",
}
# How many settings besides the speculation a label mentions.
MOST_NAMED = 2


def settings_of(side: Side) -> dict[str, Value]:
    """All settings of a side by their dotted keys, without those that are None."""
    values: dict[str, Value] = {}
    for name, value in side.engine.model_dump(exclude_none=True, mode="json").items():
        if isinstance(value, dict):
            values |= {f"{name}.{key}": _plain(inner) for key, inner in value.items()}
        elif value != []:
            values[name] = _plain(value)
    profile = side.profile.model_dump(exclude_none=True, mode="json") if side.profile else {}
    return values | {f"profile.{key}": _plain(value) for key, value in profile.items()}


def _plain(value: object) -> Value:
    if isinstance(value, list):
        return shlex.join(str(part) for part in value)
    return value if isinstance(value, (int, float, bool, str)) else str(value)


def differences(sides: Sequence[Side]) -> Difference:
    """Every setting that is not the same on all sides. Of methods that differ, what only they have is left out at
    its default."""
    values = [settings_of(side) for side in sides]
    methods = {settings.get(METHOD) for settings in values}
    if len(methods) > 1:
        values = [_without_defaults(side, settings) for side, settings in zip(sides, values, strict=True)]
    keys = dict.fromkeys(key for settings in values for key in settings)
    table = {key: tuple(settings.get(key) for settings in values) for key in keys}
    return {key: row for key, row in table.items() if any(value != row[0] for value in row)}


def _without_defaults(side: Side, settings: Mapping[str, Value]) -> dict[str, Value]:
    if isinstance(side.engine, AttachedEndpoint):
        return dict(settings)
    speculation = side.engine.speculation
    dropped = {
        f"speculation.{name}"
        for name, field in type(speculation).model_fields.items()
        if getattr(speculation, name) == field.default
    } - {METHOD, K}
    return {key: value for key, value in settings.items() if key not in dropped}


def cleared(sides: Sequence[Side], before: Sequence[Side]) -> Difference:
    """The differences that came by themselves: where the sides agreed before, and one has lost its value."""
    agreed = differences(before).keys()
    return {
        key: row for key, row in differences(sides).items() if None in row and key not in agreed and _kept(key)
    }


def _kept(key: str) -> bool:
    return not key.startswith(("speculation.", "profile."))


def labelled(sides: Sequence[Side], typed: Sequence[str], base: Sequence[Side]) -> tuple[Side, ...]:
    """The sides with their labels: what was typed; else `base`'s, while the settings are its; else what the
    settings are. No label that was not typed is used twice."""
    labels: list[str] = []
    for side, name, original in zip(sides, typed, base, strict=True):
        same = (side.engine, side.profile) == (original.engine, original.profile)
        label = name or (original.label if same else described(side, differences(sides)))
        taken = {*labels, *typed}
        numbered = (f"{label} ({number})" for number in range(2, len(sides) + 2))
        labels.append(
            label if name or label not in taken else next(text for text in numbered if text not in taken)
        )
    return tuple(side.model_copy(update={"label": label}) for side, label in zip(sides, labels, strict=True))


def described(side: Side, differing: Difference) -> str:
    """A side's settings in a few words: its speculation, and the first others that differ."""
    engine = side.engine
    if isinstance(engine, AttachedEndpoint):
        return engine.model
    values = settings_of(side)
    method = engine.speculation.method
    draft = engine.draft
    name = (
        f"{_short(draft, differing.get(DRAFT, ()))} draft"
        if method == "draft_model" and draft
        else METHODS[method]
    )
    parts = ["Speculation" if engine.speculates is None else name]
    if title := TITLES.get(engine.runtime):
        parts = [title, *(parts if engine.speculates else ())]
    if K in values:
        parts.append(f"k = {values[K]}")
    said = ("speculation.", "extra_flags", *(["runtime"] if engine.runtime in TITLES else []))
    others = [key for key in differing if key in values and not key.startswith(said)]
    parts += [_part(key, values[key], differing[key]) for key in others[:MOST_NAMED]]
    return ", ".join(parts)


def with_version(label: str, runtime: str, version: str) -> str:
    """A label that names a runtime, with the version of vLLM that it has: known once it was asked."""
    return _replaced(label, f"runtime = {runtime}", f"vLLM {version}")


def without_version(label: str, runtime: str, version: str) -> str:
    """The reverse: the runtime may have another version by now."""
    return _replaced(label, f"vLLM {version}", f"runtime = {runtime}")


def _replaced(label: str, part: str, by: str) -> str:
    return ", ".join(by if text == part else text for text in label.split(", "))


def _part(key: str, value: Value, row: Sequence[Value]) -> str:
    name = key.rpartition(".")[2]
    return (
        _short(str(value), row)
        if key == "target"
        else f"{name} = {str(value).lower() if isinstance(value, bool) else value}"
    )


def _short(model: str, row: Sequence[Value]) -> str:
    """A model's name without its owner or folder, as far as another model of the `row` is not called the same."""
    parts = model.rstrip("/").split("/")
    others = {f"/{str(other).rstrip('/')}" for other in row if other not in (None, model)}
    tails = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
    return (
        next((tail for tail in tails if not any(other.endswith(f"/{tail}") for other in others)), model) or model
    )


def without(side: Side, swept: Sequence[str]) -> str:
    """A side's label without the settings that a sweep varies, such as ", k = 5"."""
    values = settings_of(side)
    short = {"k": K, "draft": "speculation.model"}
    left_out: set[str] = set()
    for name in swept:
        keys = (short.get(name, name), f"speculation.{name}", f"knobs.{name}")
        words = {name, *(word for word, key in short.items() if key.rpartition(".")[2] == name)}
        left_out |= {f"{word} = {values[key]}" for key in keys if key in values for word in words}
    parts = side.label.split(", ")
    return ", ".join(part for part in parts if part not in left_out) or side.label
