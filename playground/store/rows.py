"""Converts records to database rows and back. Values that are no plain column are JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from playground.domain.record.counters import Counters, Sample
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.run import Mode, Run, SideRecord, StartStage, Status, TokenPrices, Trial
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.case import Case
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import SideSettings
from playground.domain.spec.workload import Conversation, Workload
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import PointRecord, Sweep

from .conversations import conversation_of
from .evidence import (
    accuracy_of,
    accuracy_row,
    harness_of,
    harness_row,
    outputs_of,
    outputs_row,
    prompts_of,
    prompts_row,
    reported_in,
    reported_row,
)
from .messages import message_of, message_text

Row = dict[str, Any]
SETTINGS: TypeAdapter[SideSettings] = TypeAdapter(SideSettings)
PROFILE: TypeAdapter[LoadProfile] = TypeAdapter(LoadProfile)
STATUS: TypeAdapter[Status] = TypeAdapter(Status)
MODE: TypeAdapter[Mode] = TypeAdapter(Mode)
PATH = TypeAdapter(EnginePath)


def _dump(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _load(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def run_row(run: Run) -> Row:
    return {
        "id": run.id,
        "created_at": run.created_at,
        "mode": run.mode,
        "status": run.status,
        "preset": run.preset,
        "sweep_id": run.sweep_id,
        "earlier": run.earlier,
        "seed": run.seed,
        # With its nulls: None is not every field's default.
        "workload": run.workload.model_dump_json(),
        "measurement": run.measurement.model_dump_json() if run.measurement else None,
        "machine": _dump(run.machine),
        "problem": message_text(run.problem),
        "outputs": outputs_row(run.outputs) if run.outputs else None,
        "accuracy": accuracy_row(run.accuracy) if run.accuracy else None,
        "harness": harness_row(run.harness) if run.harness else None,
        "prompts": prompts_row(run.prompts) if run.prompts else None,
    }


def sweep_row(sweep: Sweep) -> Row:
    return {
        "id": sweep.id,
        "created_at": sweep.created_at,
        "status": sweep.status,
        "preset": sweep.preset,
        "plan": sweep.plan.model_dump_json(),
        "case": sweep.case.model_dump_json(),
        "problem": message_text(sweep.problem),
    }


def point_row(sweep_id: str, point: PointRecord) -> Row:
    return {
        "sweep_id": sweep_id,
        "number": point.number,
        "values": _dump(point.values),
        "run_id": point.run.id if point.run else None,
    }


def sweep_of(row: Row, points: list[PointRecord]) -> Sweep:
    return Sweep(
        id=row["id"],
        created_at=row["created_at"],
        status=STATUS.validate_python(row["status"]),
        preset=row["preset"],
        plan=SweepPlan.model_validate_json(row["plan"]),
        case=Case.model_validate_json(row["case"]),
        problem=message_of(row["problem"]),
        points=points,
    )


def point_of(row: Row, run: Run | None) -> PointRecord:
    return PointRecord(row["number"], tuple(_load(row["values"])), run)


def side_row(run_id: str, position: int, side: SideRecord) -> Row:
    return {
        "run_id": run_id,
        "position": position,
        "label": side.label,
        "settings": side.settings.model_dump_json(exclude_none=True),
        "command": side.command,
        "runtime_version": side.runtime_version,
        "device": side.device,
        "placement": side.placement,
        "contended": side.contended,
        "profile": side.profile.model_dump_json() if side.profile else None,
        "ready_after_s": side.ready_after_s,
        "start": _dump({each.stage: each.seconds for each in side.start}) if side.start else None,
        "path": _dump(_known(asdict(side.path))) if side.path else None,
        "missing": _dump(side.missing),
        "token_prices": _dump(side.token_prices) if side.token_prices else None,
        "problem": message_text(side.problem),
        "log_tail": _dump(side.log_tail),
        "reported": reported_row(side.reported) if side.reported else None,
    }


def trial_row(run_id: str, position: int, trial: Trial) -> Row:
    return {
        "run_id": run_id,
        "position": position,
        "round": trial.round,
        "started_ms": trial.started_ms,
        "before": _dump(asdict(trial.before)) if trial.before else None,
        "after": _dump(asdict(trial.after)) if trial.after else None,
        "complete": trial.complete,
        "energy_j": trial.energy_j,
        "limited": trial.limited,
    }


def request_row(
    run_id: str, position: int, round_number: int, number: int, trace: RequestTrace, conversation_id: int
) -> Row:
    """`number` counts within the trial. Chunks are stored as [ms, tokens, text]; token ids once an answer."""
    return {
        "run_id": run_id,
        "position": position,
        "round": round_number,
        "number": number,
        "sent_ms": trace.sent_ms,
        # The text itself in older databases, whose column allows no null.
        "conversation": "",
        "conversation_id": conversation_id,
        "output_text": trace.output_text,
        "token_ids": _dump(trace.token_ids),
        "chunks": _dump([[chunk.ms, chunk.tokens, chunk.text] for chunk in trace.chunks]),
        "finish_reason": trace.finish_reason,
        "prompt_tokens": trace.prompt_tokens,
        "output_tokens": trace.output_tokens,
        "steps": _dump(asdict(trace.steps)) if trace.steps else None,
        "problem": message_text(trace.problem),
        "ended": trace.ended,
    }


def sample_row(run_id: str, position: int, sample: Sample) -> Row:
    return {
        "run_id": run_id,
        "position": position,
        "ms": sample.ms,
        "counters": _dump(_known(asdict(sample.counters))),
    }


def _known(values: Row) -> Row:
    return {name: value for name, value in values.items() if value is not None}


def run_of(row: Row, sides: list[SideRecord]) -> Run:
    return Run(
        id=row["id"],
        created_at=row["created_at"],
        mode=MODE.validate_python(row["mode"]),
        status=STATUS.validate_python(row["status"]),
        preset=row["preset"],
        sweep_id=row["sweep_id"],
        # Of a file that an older version saved there is none.
        earlier=row.get("earlier"),
        seed=row["seed"],
        workload=Workload.model_validate_json(row["workload"]),
        measurement=Measurement.model_validate_json(row["measurement"]) if row["measurement"] else None,
        machine=_load(row["machine"]),
        problem=message_of(row["problem"]),
        outputs=outputs_of(row["outputs"]) if row["outputs"] else None,
        accuracy=accuracy_of(row["accuracy"]) if row["accuracy"] else None,
        harness=harness_of(row["harness"]) if row["harness"] else None,
        prompts=prompts_of(row["prompts"]) if row.get("prompts") else None,
        sides=sides,
    )


def settings_of(row: Row) -> SideSettings:
    return SETTINGS.validate_json(row["settings"])


def side_of(row: Row, trials: list[Trial], samples: list[Sample]) -> SideRecord:
    # Documents of before have no such entry.
    reported, figures = reported_in(row["reported"]) if row.get("reported") else (None, None)
    return SideRecord(
        label=row["label"],
        settings=settings_of(row),
        command=row["command"],
        runtime_version=row["runtime_version"],
        device=row["device"],
        placement=row["placement"],
        contended=bool(row["contended"]),
        profile=PROFILE.validate_json(row["profile"]) if row["profile"] else None,
        ready_after_s=row["ready_after_s"],
        start=tuple(StartStage(*each) for each in (_load(row.get("start")) or {}).items()),
        path=PATH.validate_json(row["path"]) if row.get("path") else None,
        missing=tuple(_load(row["missing"]) or ()),
        token_prices=_prices(_load(row.get("token_prices"))),
        trials=trials,
        samples=samples,
        problem=message_of(row["problem"]),
        log_tail=_load(row["log_tail"]) or [],
        figures=figures,
        reported=reported,
    )


def trial_of(row: Row, requests: list[RequestTrace]) -> Trial:
    return Trial(
        round=row["round"],
        started_ms=row["started_ms"],
        requests=requests,
        before=_counters(_load(row["before"])),
        after=_counters(_load(row["after"])),
        complete=bool(row["complete"]),
        # Files that are older than these lack them.
        energy_j=row.get("energy_j"),
        limited=row.get("limited") or 0,
    )


def request_of(row: Row, conversations: Mapping[int, Conversation]) -> RequestTrace:
    """`conversations`: those of the run, by number."""
    ids = _load(row["token_ids"])
    chunks: list[Chunk] = []
    before = 0
    for ms, tokens, text in _load(row["chunks"]):
        chunk_ids = tuple(ids[before : before + tokens]) if ids is not None and tokens is not None else None
        before += tokens or 0
        chunks.append(Chunk(ms, tokens, text, chunk_ids))
    steps, number = _load(row["steps"]), row["conversation_id"]
    return RequestTrace(
        conversation=conversation_of(row["conversation"]) if number is None else conversations[number],
        sent_ms=row["sent_ms"],
        chunks=chunks,
        finish_reason=row["finish_reason"],
        prompt_tokens=row["prompt_tokens"],
        output_tokens=row["output_tokens"],
        steps=StepArrays(tuple(steps["accepted"]), tuple(steps["drafted"])) if steps else None,
        problem=message_of(row["problem"]),
        ended=bool(row["ended"]),
    )


def _prices(values: list[float] | None) -> TokenPrices | None:
    return (values[0], values[1]) if values else None


def sample_of(row: Row) -> Sample:
    counters = _counters(_load(row["counters"]))
    assert counters is not None
    return Sample(row["ms"], counters)


def _counters(values: Row | None) -> Counters | None:
    if values is None:
        return None
    positions = values.get("accepted_per_position")
    return Counters(**{**values, "accepted_per_position": tuple(positions) if positions else None})
