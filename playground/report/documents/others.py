"""The smaller documents: a load test, one line of the history, a check of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.record.figures import NotNegative
from playground.domain.record.metrics import trace_figures
from playground.domain.record.run import Status
from playground.domain.stats.verdicts import Outcome
from playground.runs.load_test import LoadTest
from playground.store import Summary

from .parts import (
    SCHEMA_VERSION,
    Interval,
    MessageDocument,
    ProfileDocument,
    SchemaVersion,
    SideFiguresDocument,
    Time,
    dumped,
    message_document,
    side_figures_document,
)


class LoadDocument(TypedDict):
    """load --json."""

    schema: SchemaVersion
    url: str
    """The base URL."""
    model: str
    profile: ProfileDocument
    figures: SideFiguresDocument
    client_cpu_s: NotNegative | None
    """Processor time of the measuring process from the first send until all was parsed."""
    wall_s: NotNegative | None
    """From the first send to the last byte."""


class CheckDocument(TypedDict):
    state: Literal["ok", "note", "broken"]
    """note: works, with a limitation."""
    id: str
    message: str


class SummaryDocument(TypedDict):
    id: str
    created_at: Time
    mode: str
    """race, measured or sweep; if unreadable, whatever is there."""
    status: Annotated[str, dumped(Status | Literal["unreadable"])]
    """unreadable: this version can't read it."""
    problem: MessageDocument | None
    """Why it is unreadable."""
    preset: str | None
    prompt: str
    labels: Annotated[Sequence[str], Field(max_length=4)]
    """In the order of the sides. Empty for a sweep that is unreadable."""
    models: Sequence[str]
    """Targets and drafts, each once. Empty for what is unreadable."""
    verdict: Outcome | None
    """Of the side that differs most from the first; null for a race, and while there is no verdict."""
    side: str | None
    speed_up: float | None
    interval: Interval | None
    tokens_per_s: Sequence[float | None]
    """By side: in a race while it decodes. Empty until the run has ended, and its result was noted."""
    machine: str | None
    version: str | None
    """vLLM's, of all sides."""
    star: bool
    tags: str
    note: str


HistoryListDocument = Annotated[list[SummaryDocument], Field(description="history list --json: newest first.")]
DoctorDocument = Annotated[list[CheckDocument], Field(min_length=1, description="doctor --json.")]


def load_document(test: LoadTest) -> LoadDocument:
    return {
        "schema": SCHEMA_VERSION,
        "url": test.endpoint.url,
        "model": test.endpoint.model,
        "profile": test.profile.model_dump(mode="json", exclude_none=True),
        "figures": side_figures_document(trace_figures(test.traces)),
        "client_cpu_s": test.client_cpu_s,
        "wall_s": test.wall_s,
    }


def summary_document(summary: Summary) -> SummaryDocument:
    return {
        "id": summary.id,
        "created_at": summary.created_at,
        "mode": summary.mode,
        "status": summary.status,
        "problem": message_document(summary.problem, "en"),
        "preset": summary.preset,
        "prompt": summary.prompt,
        "labels": summary.labels,
        "models": summary.models,
        "verdict": summary.result.headline.verdict,
        "side": summary.result.headline.side,
        "speed_up": summary.result.headline.speed_up,
        "interval": summary.result.headline.interval,
        "tokens_per_s": summary.result.headline.rates,
        "machine": summary.result.machine,
        "version": summary.result.version,
        "star": summary.result.star,
        "tags": summary.result.tags,
        "note": summary.result.note,
    }
