"""From a document as the command line prints it to a record that the page shows.

A document has no counters, and of a measured run no requests: what followed from them is taken as it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import accumulate, pairwise
from typing import Any

from pydantic import TypeAdapter

from playground.domain.message import Message
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.figures import SideFigures
from playground.domain.record.run import Run, SideRecord, Trial, TrialSummary
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.case import Case
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import SideSettings
from playground.domain.spec.workload import Objective, Workload
from playground.domain.stats.verdicts import Verdict
from playground.domain.sweep.plan import Point, SweepPlan
from playground.domain.sweep.record import PointRecord, Sweep
from playground.domain.sweep.result import LATENCIES, GeometricMean, PointResult, SideResult

Document = Mapping[str, Any]
SETTINGS: TypeAdapter[SideSettings] = TypeAdapter(SideSettings)
PROFILE: TypeAdapter[LoadProfile] = TypeAdapter(LoadProfile)
PATH: TypeAdapter[EnginePath] = TypeAdapter(EnginePath)
FIGURES: TypeAdapter[SideFigures] = TypeAdapter(SideFigures)
UNKNOWN = GeometricMean(None, None)


def run_of(document: Document) -> Run:
    """Raises what reading a damaged row does: see `store/unreadable.py`."""
    plan, workload = document["measurement"], Workload.model_validate(document["workload"])
    return Run(
        id=document["run_id"],
        created_at=document["created_at"],
        mode=document["mode"],
        status=document["status"],
        preset=document["preset"],
        machine=dict(document["machine"]),
        workload=workload,
        measurement=Measurement.model_validate(plan) if plan is not None else None,
        seed=document["seed"],
        problem=_message(document["problem"]),
        sides=[_side(document, side, workload) for side in document["sides"]],
    )


def _message(document: Document | None) -> Message | None:
    return None if document is None else Message("recording.said", {"text": document["message"]})


def _side(document: Document, side: Document, workload: Workload) -> SideRecord:
    runtime, profile, figures = side["runtime"], side["profile"], _figures(side["figures"])
    if document["mode"] == "race":
        traces = [_trace(request, workload) for request in side["requests"]]
        trials = [Trial(requests=traces, complete=True)]
    else:
        trials = _summaries(document["rounds"], side["label"], figures.requests)
    return SideRecord(
        side["label"],
        SETTINGS.validate_python(side["settings"]),
        command=side["command"] or "",
        runtime_version=runtime["version"],
        device=runtime["device"],
        placement=runtime["placement"] or "",
        contended=side["contended"],
        profile=PROFILE.validate_python(profile) if profile is not None else None,
        path=PATH.validate_python(side["path"]) if "path" in side else None,
        missing=tuple(side["missing"]),
        problem=_message(side["problem"]),
        trials=trials,
        figures=figures,
    )


def _figures(document: Document) -> SideFigures:
    """A figure that was not known yet when the document was written is unknown."""
    return FIGURES.validate_python({**dict.fromkeys(field.name for field in fields(SideFigures)), **document})


def _summaries(rounds: Sequence[Document], label: str, requests: int) -> list[Trial]:
    each = round(requests / len(rounds)) if rounds else 0
    return [
        Trial(
            round=item["round"],
            # Only the order in which the sides served is known.
            started_ms=float(item["order"].index(label)),
            complete=True,
            summary=TrialSummary(each, item["values"][label]),
        )
        for item in rounds
    ]


def _trace(document: Document, workload: Workload) -> RequestTrace:
    """The text comes with the chunks by their shares of the tokens: which piece had which characters is not
    known."""
    text, ids = document["output_text"], document["token_ids"]
    ends = [0, *accumulate(tokens or 0 for _, tokens in document["chunks"])]
    total = ends[-1] or 1
    chunks = [
        Chunk(
            ms,
            tokens,
            text[len(text) * start // total : len(text) * end // total],
            tuple(ids[start:end]) if ids is not None else None,
        )
        for (ms, tokens), (start, end) in zip(document["chunks"], pairwise(ends), strict=True)
    ]
    return RequestTrace(
        workload.conversation,
        chunks=chunks,
        finish_reason=document["finish_reason"],
        output_tokens=document["output_tokens"],
        problem=_message(document["problem"]),
        ended=True,
    )


def sweep_of(document: Document) -> Sweep:
    """Raises KeyError for a document that is older than its settings, and what `run_of` does."""
    sweep = Sweep(
        id=document["run_id"],
        created_at=document["created_at"],
        plan=SweepPlan.model_validate(document["plan"]),
        case=Case.model_validate(document["case"]),
        preset=document["preset"],
        status=document["status"],
        problem=_message(document["problem"]),
    )
    machine, versions = document["machine"], document["versions"]
    sweep.points = [
        _point(sweep, point, item, machine, versions)
        for point, item in zip(sweep.planned, document["points"], strict=True)
    ]
    return sweep


def _point(
    sweep: Sweep, point: Point, document: Document, machine: dict[str, object], versions: Mapping[str, str]
) -> PointRecord:
    if document["run_id"] is None:
        return PointRecord(point.number, point.values)
    verdicts = {item["side"]: _verdict(item) for item in document["verdicts"]}
    figures = {label: _figures(item) for label, item in document["sides"].items()}
    rounds = max((verdict.rounds for verdict in verdicts.values()), default=0)
    problem = _message(document["problem"])
    run = Run(
        id=document["run_id"],
        created_at=sweep.created_at,
        mode="measured",
        machine=machine,
        workload=point.case.workload,
        measurement=point.case.measurement,
        sweep_id=sweep.id,
        status="failed" if problem is not None else "done",
        problem=problem,
        sides=[
            SideRecord(
                side.label,
                side.engine,
                runtime_version=versions.get(side.label),
                profile=side.profile,
                trials=[Trial(number, complete=True, summary=TrialSummary(0, None)) for number in range(rounds)],
                figures=figures.get(side.label),
            )
            for side in point.case.sides
        ],
    )
    objective = point.case.workload.objective
    sides = tuple(_side_result(label, side, verdicts.get(label), objective) for label, side in figures.items())
    record = PointRecord(point.number, point.values, run)
    record.recorded(PointResult(point.number, point.values, run, sides))
    return record


def _verdict(document: Document) -> Verdict:
    interval = document["interval"]
    return Verdict(
        document["side"],
        document["baseline"],
        document["metric"],
        document["verdict"],
        document["speed_up"],
        tuple(interval) if interval is not None else None,
        document["rounds"],
        needed_rounds=document["needed_rounds"],
    )


def _side_result(label: str, figures: SideFigures, verdict: Verdict | None, objective: Objective) -> SideResult:
    """The figures of all rounds, without the intervals that each round's would give."""
    values: dict[Objective, float | None] = {
        "tpot": figures.tpot_ms.mean if figures.tpot_ms else None,
        "ttft": figures.ttft_ms.mean if figures.ttft_ms else None,
        "throughput": figures.output_tokens_per_s,
        "goodput": figures.goodput_requests_per_s,
    }
    value, rate = GeometricMean(values[objective], None), GeometricMean(figures.output_tokens_per_s, None)
    return SideResult(label, figures, value, verdict, rate, dict.fromkeys(LATENCIES, UNKNOWN))
