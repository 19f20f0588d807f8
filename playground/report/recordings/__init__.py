"""Runs and sweeps of other machines that are shipped: they play and open without an engine."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.settings import EngineSettings
from playground.domain.stats.headline import Headline
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.presets import FOLDER
from playground.store import readable
from playground.store.results import machine_name
from playground.store.transfer import loaded

from .documents import run_of, sweep_of

PLACE = FOLDER / "recordings"
# In the order in which they are offered.
KINDS = ("race", "measured", "sweep")


def names() -> list[str]:
    """Each is its preset's name and its kind, as in "smollm2-ngram.race"."""
    stems = [path.stem for path in PLACE.glob("*.json")]
    return sorted((stem for stem in stems if kind_of(stem) in KINDS), key=_place)


def _place(name: str) -> tuple[str, int]:
    return preset_of(name), KINDS.index(kind_of(name))


def preset_of(name: str) -> str:
    return name.rpartition(".")[0]


def kind_of(name: str) -> str:
    return name.rpartition(".")[2]


@cache
def load(name: str) -> Run | Sweep:
    """Read once and shared: nobody may change it. Raises InvalidInput for an unknown name, WorkFailed for a file
    that can't be read."""
    if name not in names():
        raise InvalidInput("recording.missing", name=name)
    with readable(name):
        document: dict[str, Any] = json.loads((PLACE / f"{name}.json").read_text(encoding="utf-8"))
        if "record" in document:
            return loaded(document["record"])
        return sweep_of(document) if "points" in document else run_of(document)


def headline_of(record: Run | Sweep) -> Headline:
    """What a list says of it; of a sweep the recommended setting's verdict. Reads every chunk."""
    if isinstance(record, Run):
        return Headline.of(record)
    analysis = SweepAnalysis.of(record)
    best = analysis.recommendation
    side = analysis.points[best.number].side(best.side or "") if best.number is not None else None
    verdict = side.verdict if side is not None else None
    return Headline() if verdict is None else Headline.of_verdict(verdict)


def _first_run(record: Run | Sweep) -> Run | None:
    if isinstance(record, Run):
        return record
    return next((point.run for point in record.points if point.run is not None), None)


def sides_of(record: Run | Sweep) -> list[SideRecord]:
    """The sides, of a sweep those of its first point."""
    run = _first_run(record)
    return run.sides if run is not None else []


def machine_of(record: Run | Sweep) -> str:
    run = _first_run(record)
    return (machine_name(run.machine) if run is not None else None) or "-"


def origin(record: Run | Sweep) -> list[Message]:
    """Where and when it was recorded, and what of it is not as it would be with the real weights."""
    sides = sides_of(record)
    params: dict[str, object] = {
        "machine": machine_of(record),
        "date": record.created_at[:10],
        "versions": " | ".join(dict.fromkeys(side.runtime_version for side in sides if side.runtime_version))
        or "-",
    }
    complete = "-" not in (params["machine"], params["versions"])
    said = [Message("recording.on" if complete else "recording.at", params)]
    engines = [side.settings for side in sides if isinstance(side.settings, EngineSettings)]
    if any(engine.knobs.load_format == "dummy" for engine in engines):
        said.append(Message("recording.random_weights"))
    if any(engine.synthetic for engine in engines):
        said.append(Message("recording.prescribed"))
    return said
