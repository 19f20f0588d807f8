"""Reads presets/*.toml into settings and workloads. A file holds only overrides; an unknown key is an error."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from playground.domain.claims.claims import CLAIMS, ClaimName
from playground.domain.errors import InvalidInput
from playground.domain.limits import DEFAULTS, Limits
from playground.domain.message import Message, Where
from playground.domain.spec.case import LEAST_SIDES, MOST_SIDES, Case, Side
from playground.domain.spec.fields import Frozen
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings, SideSettings
from playground.domain.spec.workload import Workload
from playground.domain.sweep.plan import SweepPlan
from playground.domain.toml_lines import Path as Place
from playground.domain.toml_lines import key_lines, line_of
from playground.domain.validation import nearest_of, refusals, refused
from playground.domain.vllm_cli.old_names import modernised

FOLDER = Path(__file__).parents[1] / "presets"
EMBEDDED = "smollm2-ngram"
# The prompt of a preset that has none.
DEFAULT_PROMPT = "Explain how a clock keeps time, in a few paragraphs."
# More are counted, but not listed.
MOST_FAULTS = 20
GPU_KNOBS = ("gpu_memory_utilization", "quantization")


class Localised(Frozen):
    """One sentence by language: plain text is the same in each, and so is a language that is left out."""

    en: str = ""
    zh: Annotated[str, Field(alias="zh-CN")] = ""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"en": value} if isinstance(value, str) else value

    def in_locale(self, locale: str) -> str:
        return (self.zh or self.en) if locale == "zh-CN" else (self.en or self.zh)


class Preset(Frozen):
    """Two to four sides, a workload, how it is measured, and perhaps what to sweep over. `gpu`: whether it needs
    one; where it is left out, that follows from the sides. `equal_output` promises the same greedy answer on every
    side; `claim` is what the experiment is to confirm or refute; `recording` names another preset whose recordings
    show the like."""

    name: str
    title: Localised = Localised()
    shows: Localised = Localised()
    needs: Localised = Localised()
    gpu: bool = False
    equal_output: bool = False
    sides: Annotated[tuple[Side, ...], Field(min_length=LEAST_SIDES, max_length=MOST_SIDES)]
    workload: Workload = Workload(prompt=DEFAULT_PROMPT)
    measurement: Measurement = Measurement()
    sweep: SweepPlan | None = None
    claim: ClaimName | None = None
    recording: str | None = None
    _notes: tuple[Message, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _fill_in(self) -> Preset:
        if "gpu" not in self.model_fields_set:
            object.__setattr__(self, "gpu", any(_needs_gpu(side.engine) for side in self.sides))
        if not self.title.in_locale("en"):
            object.__setattr__(self, "title", Localised(en=self.name))
        return self

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
    stems = [path.stem for path in FOLDER.glob("*.toml")]
    return sorted(stems, key=lambda name: (name != EMBEDDED, says_gpu(name), name))


def exists(name: str) -> bool:
    """Whether a preset of that name is shipped; no file is read."""
    return any(path.stem == name for path in FOLDER.glob("*.toml"))


def is_shipped(preset: Preset) -> bool:
    """Whether the preset is shipped. Other presets may name files that a visitor must not read."""
    return exists(preset.name)


def says_gpu(name: str) -> bool:
    """Whether that shipped preset says that it needs a GPU."""
    path = FOLDER / f"{name}.toml"
    try:
        return bool(tomllib.loads(path.read_text(encoding="utf-8")).get("gpu"))
    except (OSError, ValueError):
        # `load` reports the error.
        return True


def _needs_gpu(engine: SideSettings) -> bool:
    """Whether these settings mean something on a GPU only."""
    if not isinstance(engine, EngineSettings):
        return False
    return engine.speculation.needs_gpu or any(getattr(engine.knobs, knob) is not None for knob in GPU_KNOBS)


def load(name_or_path: str, limits: Limits = DEFAULTS) -> Preset:
    """A shipped preset by name, or a file by path. Raises InvalidInput naming file, key and nearest valid key."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = FOLDER / f"{name_or_path}.toml"
    try:
        with path.open("rb") as file:
            content = file.read(limits.preset_bytes + 1)
        limits.check("preset_bytes", len(content))
        text = content.decode("utf-8-sig")
        document = tomllib.loads(text)
    except OSError as error:
        nearest = nearest_of(name_or_path, names())
        raise InvalidInput("preset.missing", name=name_or_path, nearest=nearest) from error
    except (ValueError, RecursionError) as error:
        # Bytes that are not UTF-8 and numbers of thousands of digits raise other errors than TOMLDecodeError.
        raise InvalidInput("preset.not_toml", file=path.name, detail=str(error).splitlines()[0]) from error
    return _read(document, key_lines(text), path)


def _read(document: dict[str, Any], lines: Mapping[Place, int], path: Path) -> Preset:
    common = document.pop("common", {})
    sides = document.get("sides", [])
    if not isinstance(common, dict) or not isinstance(sides, list):
        raise InvalidInput("preset.bad_shape", file=path.name)
    faults: list[InvalidInput] = []
    notes: list[Message] = []
    common = _modernised(common, f"{path.name}, common", notes)
    merged: list[object] = []
    for index, side in enumerate(sides):
        try:
            merged.append(_side(common, side, path.name, notes))
        except InvalidInput as error:
            place = _place(path.name, line_of(lines, ("sides", index)))
            faults.append(InvalidInput(error.message_id, **{**error.params, "where": place}))
            merged.append({"label": str(index), "engine": {"target": "-"}})
    if isinstance(workload := document.get("workload"), dict):
        document["workload"] = {"prompt": DEFAULT_PROMPT, **workload}
    document = {"name": path.stem, **document} | ({"sides": merged} if "sides" in document else {})

    def where_of(place: Sequence[int | str]) -> Where:
        return _place(path.name, _line(lines, tuple(place)))

    faults += refusals(Preset, document, where_of)
    if LEAST_SIDES <= len(merged) <= MOST_SIDES:
        # pydantic counts only the entries without a fault.
        faults = [fault for fault in faults if fault.params.get("key") != "sides"]
    _raise(faults)
    return Preset.model_validate(document).with_notes(notes)


def _raise(faults: Sequence[InvalidInput]) -> None:
    """Raise all faults as one, by line; what all sides have in common is wrong once."""

    def line(fault: InvalidInput) -> int:
        where = fault.params["where"]
        return int(str(where.params["line"])) if isinstance(where, Message) else 0

    by_place = {(line(fault), str(fault.params.get("key")).rpartition(".")[2]): fault for fault in faults}
    ordered = [by_place[place] for place in sorted(by_place)]
    if len(ordered) == 1:
        raise ordered[0]
    if ordered:
        listed = reduce(_also, [fault.as_message() for fault in ordered[:MOST_FAULTS]])
        if len(ordered) > MOST_FAULTS:
            listed = _also(listed, Message("preset.more", {"count": len(ordered) - MOST_FAULTS}))
        raise InvalidInput("preset.faults", count=len(ordered), faults=listed)


def _also(first: Message, second: Message) -> Message:
    return Message("preset.also", {"first": first, "second": second})


def _line(lines: Mapping[Place, int], place: Place) -> int | None:
    """The line of a field: a side's own value, or the one that all sides have in common."""
    if place[:1] != ("sides",) or "engine" not in place[2:3]:
        return line_of(lines, place)
    own, common = (*place[:2], *place[3:]), ("common", *place[3:])
    # What a side's engine itself lacks is lacking in the common settings, where there are any.
    table = lines.get(("common",)) if len(common) == 2 else None
    return lines.get(own) or lines.get(common) or table or line_of(lines, own)


def _place(file: str, line: int | None) -> Where:
    return file if line is None else Message("preset.line", {"file": file, "line": line})


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
