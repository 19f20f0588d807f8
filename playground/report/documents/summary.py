"""One line of the history as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.record.run import Status
from playground.domain.stats.verdicts import Outcome
from playground.store import Summary

from .parts import Interval, MessageDocument, Time, dumped, message_document


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
