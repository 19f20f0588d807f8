"""presets/*.toml -> settings and workloads. Only overrides are written; an unknown key is an error."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError, model_validator

from .domain.base_url import without_secrets
from .domain.claims import CLAIMS, ClaimName
from .domain.errors import InvalidInput
from .domain.knobs import Case
from .domain.measurement import Measurement
from .domain.settings import UNION_MEMBERS, EngineSettings, Frozen
from .domain.sides import Side
from .domain.sweep import SweepPlan
from .domain.workload import Workload

FOLDER = Path(__file__).parents[1] / "presets"
EMBEDDED = "smollm2-ngram"

ModelT = TypeVar("ModelT", bound=BaseModel)


class Localised(Frozen):
    """One sentence in both languages."""

    en: str
    zh: Annotated[str, Field(alias="zh-CN")]

    def in_locale(self, locale: str) -> str:
        return self.zh if locale == "zh-CN" else self.en


class Preset(Frozen):
    """Two to four sides, a workload, how it is measured, and perhaps what to sweep over. `equal_output` promises
    the same greedy answer on every side; `claim` is what the experiment is to confirm or refute."""

    name: str
    title: Localised
    shows: Localised
    needs: Localised
    gpu: bool
    equal_output: bool = False
    sides: Annotated[tuple[Side, ...], Field(min_length=2, max_length=4)]
    workload: Workload
    measurement: Measurement = Measurement()
    sweep: SweepPlan | None = None
    claim: ClaimName | None = None

    @model_validator(mode="after")
    def _is_the_claims_experiment(self) -> Preset:
        if self.claim is not None and not CLAIMS[self.claim].fits(len(self.sides), self.sweep):
            raise ValueError(f"these sides and this sweep are no experiment on the claim {self.claim!r}")
        return self

    @property
    def case(self) -> Case:
        """What a sweep of it starts from."""
        return Case(sides=self.sides, workload=self.workload, measurement=self.measurement)


def names() -> list[str]:
    """All presets: the embedded default, then those that run anywhere, then those that need a GPU."""
    needs_gpu = {path.stem: _needs_gpu(path) for path in FOLDER.glob("*.toml")}
    return sorted(needs_gpu, key=lambda name: (name != EMBEDDED, needs_gpu[name], name))


def _needs_gpu(path: Path) -> bool:
    try:
        return bool(tomllib.loads(path.read_text(encoding="utf-8")).get("gpu"))
    except (OSError, ValueError):
        # Said where it is loaded.
        return True


def load(name_or_path: str) -> Preset:
    """A shipped preset by name, or a file by path. Raises InvalidInput naming file, key and nearest valid key."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = FOLDER / f"{name_or_path}.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        nearest = nearest_of(name_or_path, names())
        raise InvalidInput("preset.missing", name=name_or_path, nearest=nearest) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput("preset.not_toml", file=path.name, detail=str(error)) from error
    common = document.pop("common", {})
    sides = document.get("sides", [])
    if not isinstance(common, dict) or not isinstance(sides, list):
        raise InvalidInput("preset.bad_shape", file=path.name)
    document["sides"] = [_side(common, side, path.name) for side in sides]
    return validate(Preset, {"name": path.stem, **document}, where=path.name)


def _side(common: Mapping[str, Any], side: object, file: str) -> object:
    """With `base_url` it is an endpoint that already runs, and nothing of the common engine is its own."""
    if not isinstance(side, dict):
        return side
    own = {key: value for key, value in side.items() if key not in ("label", "profile")}
    shared = {key: side[key] for key in ("label", "profile") if key in side}
    if "base_url" not in own:
        return {**shared, "engine": _merged(common, own)}
    if mixed := sorted(own.keys() & EngineSettings.model_fields.keys()):
        raise InvalidInput("settings.attached_mixed", where=file, side=side.get("label"), keys=", ".join(mixed))
    return {**shared, "engine": own}


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`. A side's speculation replaces the common one whole: its fields are the method's."""
    merged = {**base, **over}
    if isinstance(base.get("knobs"), dict) and isinstance(over.get("knobs"), dict):
        merged["knobs"] = {**base["knobs"], **over["knobs"]}
    return merged


def validate(model: type[ModelT], values: Mapping[str, Any], where: str) -> ModelT:
    """Make `model` of `values`; the first thing wrong becomes one clear InvalidInput that names the key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = [part for part in first["loc"] if part not in UNION_MEMBERS]
        key = ".".join(str(part) for part in path) or "-"
        if first["type"] == "extra_forbidden":
            valid = _keys_at(model, first["loc"][:-1])
            raise InvalidInput(
                "settings.unknown_key", where=where, key=key, nearest=nearest_of(str(path[-1]), valid)
            ) from error
        if not path:
            detail = first["msg"].removeprefix("Value error, ")
            raise InvalidInput("settings.invalid", where=where, detail=detail) from error
        if first["type"] == "missing":
            raise InvalidInput("settings.missing_key", where=where, key=key) from error
        if path[-1] == "base_url":
            # Without the cause: it repeats the address, and with it a key that somebody put there.
            raise InvalidInput("endpoint.bad_url", url=without_secrets(str(first["input"]))) from None
        detail = first["msg"].removeprefix("Value error, ")
        value = first["input"] if not isinstance(first["input"], dict) else "{…}"
        raise InvalidInput("settings.bad_value", where=where, key=key, value=value, detail=detail) from error


def nearest_of(name: str, candidates: list[str]) -> str:
    """The candidate that looks most like `name`; all of them, if none does."""
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.4)
    return close[0] if close else ", ".join(candidates)


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The keys that the model nested at `path` accepts."""
    current: Any = model
    for part in path:
        if isinstance(part, int):
            current = get_args(current)[0]
        elif part in UNION_MEMBERS:
            current = UNION_MEMBERS[part]
        else:
            current = _inner(current.model_fields[part].annotation)
    return [field.alias or name for name, field in current.model_fields.items()]


def _inner(annotation: Any) -> Any:
    """Without Annotated and `| None`."""
    if get_origin(annotation) is Annotated:
        return _inner(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return next((arg for arg in get_args(annotation) if arg is not type(None)), annotation)
    return annotation


def choices(model: type[BaseModel], field: str) -> list[str] | None:
    """The literal values a field accepts, or None if it is free."""
    inner = _inner(model.model_fields[field].annotation)
    return [str(value) for value in get_args(inner)] if get_origin(inner) is Literal else None
