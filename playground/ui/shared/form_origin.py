"""What the page's fields were filled from: a shipped preset, or a run or sweep of the history.

The page itself stores it as a text: state that a server keeps for a page is lost after a restart or a long sleep.
"""

from __future__ import annotations

import json

from playground import presets
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.domain.spec.case import LEAST_SIDES, MOST_SIDES, Case
from playground.domain.spec.measurement import Measurement
from playground.domain.sweep.record import Sweep
from playground.i18n import LOCALES, say
from playground.presets import Localised, Preset
from playground.runs.host import Host


def origin(preset: Preset) -> str:
    """The text: the preset's name (for a run of the history its id), and how many sides there are."""
    return json.dumps([preset.name, len(preset.sides)])


def _parts(text: str) -> tuple[str, int]:
    """The name and the count. The text comes from a browser, which may send anything."""
    name, count = json.loads(text)
    return name, min(max(int(count), LEAST_SIDES), MOST_SIDES)


def sides_of(text: str) -> int:
    """How many sides there are now."""
    return _parts(text)[1]


def with_count(text: str, count: int) -> str:
    """The text for so many sides."""
    return json.dumps([_parts(text)[0], count])


def from_preset(text: str) -> bool:
    """Whether it is a shipped preset."""
    return presets.exists(_parts(text)[0])


def filled_from(host: Host, text: str) -> Preset:
    """The preset, with as many sides as there are now. Raises InvalidInput for a run that is no longer in the
    history. Blocking."""
    name, count = _parts(text)
    if presets.exists(name):
        preset = presets.load(name)
    elif (record := settings_of(host, name)) is not None:
        preset = as_preset(record)
    else:
        raise InvalidInput("kept.gone", id=name)
    return with_sides(preset, count)


def with_sides(preset: Preset, count: int) -> Preset:
    """The preset with so many sides; additional ones copy its last."""
    sides = preset.sides
    return preset.model_copy(update={"sides": (sides + sides[-1:] * max(0, count - len(sides)))[:count]})


def preset_of(case: Case, base: Preset) -> str | None:
    """The name of the shipped preset that the fields were filled from, if nothing was changed since."""
    unchanged = presets.is_shipped(base) and presets.load(base.name).case == case
    return base.name if unchanged else None


def stored(host: Host, run_id: str) -> Run | Sweep | None:
    """The run or sweep with that id: of the history, or one that could not be saved. Blocking."""
    return host.unsaved_record(run_id) or host.history.sweep(run_id) or host.history.get(run_id)


def settings_of(host: Host, run_id: str) -> Run | Sweep | None:
    """The same, but without what was measured, which is quick."""
    return host.unsaved_record(run_id) or host.history.settings(run_id)


def as_preset(record: Run | Sweep) -> Preset:
    """What it was started from: the shipped preset if that is unchanged, else a preset with the record's settings
    and id. Raises InvalidInput for a run that another tool measured."""
    if isinstance(record, Run) and record.mode == "imported":
        raise InvalidInput("import.no_repeat", id=record.id)
    shipped = presets.load(record.preset) if record.preset and presets.exists(record.preset) else None
    if isinstance(record, Sweep):
        case, plan = record.case, record.plan
    else:
        # A race has no measurement.
        usual = shipped.measurement if shipped else Measurement()
        case, plan = (
            Case(sides=record.settings, workload=record.workload, measurement=record.measurement or usual),
            None,
        )
    if shipped is not None and shipped.case == case:
        return shipped if plan is None else shipped.model_copy(update={"sweep": plan})
    return Preset(
        name=record.id,
        title=_localised("kept.title", id=record.id),
        shows=_localised("kept.shows", time=record.created_at.replace("T", " ")[:16]),
        gpu=False,
        sides=case.sides,
        workload=case.workload,
        measurement=case.measurement,
        sweep=plan,
    )


def _localised(sentence: str, **params: object) -> Localised:
    return Localised.model_validate({locale: say(sentence, locale, **params) for locale in LOCALES})
