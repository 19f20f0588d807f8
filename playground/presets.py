"""Reads presets/*.toml into settings and workloads. A file holds only overrides; an unknown key is an error."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from playground.domain.claims.claims import CLAIMS, ClaimName
from playground.domain.errors import InvalidInput
from playground.domain.limits import DEFAULTS, Limits
from playground.domain.message import Message
from playground.domain.spec.case import LEAST_SIDES, MOST_SIDES, Case, Side
from playground.domain.spec.fields import Frozen
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Workload
from playground.domain.sweep.plan import SweepPlan
from playground.domain.validation import nearest_of, refused, validate
from playground.domain.vllm_cli.old_names import modernised

FOLDER = Path(__file__).parents[1] / "presets"
EMBEDDED = "smollm2-ngram"


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
    sides: Annotated[tuple[Side, ...], Field(min_length=LEAST_SIDES, max_length=MOST_SIDES)]
    workload: Workload
    measurement: Measurement = Measurement()
    sweep: SweepPlan | None = None
    claim: ClaimName | None = None
    _notes: tuple[Message, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _is_the_claims_experiment(self) -> Preset:
        if self.claim is not None and not CLAIMS[self.claim].fits(len(self.sides), self.sweep):
            raise refused("preset.no_experiment", "claim", claim=self.claim)
        return self

    @property
    def notes(self) -> tuple[Message, ...]:
        """Notes on old names in the preset's file that were translated."""
        return self._notes

    def with_notes(self, notes: Iterable[Message]) -> Preset:
        copy = self.model_copy()
        copy._notes = tuple(notes)
        return copy

    @property
    def case(self) -> Case:
        """The case that a sweep of this preset starts from."""
        return Case(sides=self.sides, workload=self.workload, measurement=self.measurement)


def names() -> list[str]:
    """All presets: the embedded default, then those that run anywhere, then those that need a GPU."""
    needs_gpu = {path.stem: _needs_gpu(path) for path in FOLDER.glob("*.toml")}
    return sorted(needs_gpu, key=lambda name: (name != EMBEDDED, needs_gpu[name], name))


def exists(name: str) -> bool:
    """Whether a preset of that name is shipped; no file is read."""
    return any(path.stem == name for path in FOLDER.glob("*.toml"))


def is_shipped(preset: Preset) -> bool:
    """Whether the preset is shipped. Other presets may name files that a visitor must not read."""
    return exists(preset.name)


def _needs_gpu(path: Path) -> bool:
    try:
        return bool(tomllib.loads(path.read_text(encoding="utf-8")).get("gpu"))
    except (OSError, ValueError):
        # `load` reports the error.
        return True


def load(name_or_path: str, limits: Limits = DEFAULTS) -> Preset:
    """A shipped preset by name, or a file by path. Raises InvalidInput naming file, key and nearest valid key."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = FOLDER / f"{name_or_path}.toml"
    try:
        with path.open("rb") as file:
            content = file.read(limits.preset_bytes + 1)
        limits.check("preset_bytes", len(content))
        document = tomllib.loads(content.decode())
    except OSError as error:
        nearest = nearest_of(name_or_path, names())
        raise InvalidInput("preset.missing", name=name_or_path, nearest=nearest) from error
    except (ValueError, RecursionError) as error:
        # Bytes that are not UTF-8 and numbers of thousands of digits raise other errors than TOMLDecodeError.
        raise InvalidInput("preset.not_toml", file=path.name, detail=str(error).splitlines()[0]) from error
    common = document.pop("common", {})
    sides = document.get("sides", [])
    if not isinstance(common, dict) or not isinstance(sides, list):
        raise InvalidInput("preset.bad_shape", file=path.name)
    notes: list[Message] = []
    common = _modernised(common, f"{path.name}, common", notes)
    document["sides"] = [_side(common, side, path.name, notes) for side in sides]
    preset = validate(Preset, {"name": path.stem, **document}, where=path.name)
    return preset.with_notes(notes)


def _modernised(settings: Mapping[str, Any], where: str, notes: list[Message]) -> dict[str, Any]:
    modern, messages = modernised(settings, where)
    notes += [Message("old.at", {"where": where, "note": note}) for note in messages]
    return modern


def _side(common: Mapping[str, Any], side: object, file: str, notes: list[Message]) -> object:
    """A side's values over the common engine's. With `base_url` it is an endpoint that already runs, and takes no
    value from the common engine."""
    if not isinstance(side, dict):
        return side
    engine = {key: value for key, value in side.items() if key not in ("label", "profile")}
    shared = {key: side[key] for key in ("label", "profile") if key in side}
    if "base_url" not in engine:
        engine = _modernised(engine, f"{file}, {side.get('label', '-')}", notes)
        return {**shared, "engine": _merged(common, engine)}
    if mixed := sorted(engine.keys() & EngineSettings.model_fields.keys()):
        raise InvalidInput("settings.attached_mixed", where=file, side=side.get("label"), keys=", ".join(mixed))
    return {**shared, "engine": engine}


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` updated by `over`. Knobs are merged one by one; speculation is replaced whole, since its fields
    depend on its method."""
    merged = {**base, **over}
    if isinstance(base.get("knobs"), dict) and isinstance(over.get("knobs"), dict):
        merged["knobs"] = {**base["knobs"], **over["knobs"]}
    return merged
