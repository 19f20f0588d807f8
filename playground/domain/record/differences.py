"""What differs between runs besides what came out: settings, versions, machine, prompts."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from playground.domain.spec.case import Side
from playground.domain.spec.difference import settings_of

from .run import Run, SideRecord


@dataclass(frozen=True, slots=True)
class Difference:
    """`key` is dotted, of a side after its letter: "B.knobs.max_num_seqs". `values`: each run's; None: it has
    none, or leaves it to the engine."""

    key: str
    values: tuple[str | None, ...]


def differences(runs: Sequence[Run]) -> list[Difference]:
    """In the order of the runs' own settings: the machine, the workload, the measurement, side by side."""
    facts = [dict(_facts(run)) for run in runs]
    keys = dict.fromkeys(key for of_run in facts for key in of_run)
    rows = (Difference(key, tuple(of_run.get(key) for of_run in facts)) for key in keys)
    # What another tool does not tell may be the same, or not.
    imported = [run.mode == "imported" for run in runs]
    return [
        row
        for row in rows
        if len({*row.values}) > 1
        and not any(map(operator.and_, imported, (value is None for value in row.values)))
    ]


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    for name in ("mode", "preset", "seed"):
        yield from _flat(name, getattr(run, name))
    yield from _flat("machine", run.machine)
    if run.mode == "imported":
        [side] = run.sides
        assert run.measurement is not None
        yield from _flat("measurement", {"profile": run.measurement.profile.model_dump(mode="json")})
        fields = {"label": side.label, "target": side.settings.target, "runtime_version": side.runtime_version}
        yield from _flat("A", fields)
        return
    yield from _flat("workload", run.workload.model_dump(mode="json"))
    if run.measurement is not None:
        yield from _flat("measurement", run.measurement.model_dump(mode="json"))
    for letter, side in zip("ABCD", run.sides, strict=False):
        yield from _flat(letter, _of_side(side))
    # The content of a file or set may change under its name.
    sent = {trace.conversation[-1].content for side in run.sides for trace in side.requests if trace.conversation}
    if sent:
        yield "prompts_sent", " | ".join(sorted(sent))


def _of_side(side: SideRecord) -> dict[str, Any]:
    settings = settings_of(Side(label=side.label, engine=side.settings, profile=side.profile))
    ran_on = {"runtime_version": side.runtime_version, "device": side.device, "placement": side.placement}
    # The cache's room is a little different at every start.
    path = asdict(replace(side.path, kv_cache_tokens=None)) if side.path else None
    return {"label": side.label, **settings, **ran_on, "path": path}


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}", inner)
    elif value is not None and value not in ("", [], ()):
        yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
