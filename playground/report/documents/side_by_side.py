"""Runs beside each other as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.stats.repetition import Agreement
from playground.i18n import Locale
from playground.report.side_by_side import SideBySide

from .parts import SCHEMA_VERSION, Interval, MessageDocument, SchemaVersion, message_document


class DifferenceDocument(TypedDict):
    key: str
    """Dotted; of a side after its letter: B.knobs.max_num_seqs."""
    values: Sequence[str | None]
    """Each run's, in the order of run_ids; null: none, or the engine's default."""


class ComparedRatioDocument(TypedDict):
    ratio: float
    interval: Interval | None
    """95%, by the rounds of both runs; null without enough. What varies from one run to the next is not in it."""


class ComparedFigureDocument(TypedDict):
    figure: str
    labels: Sequence[str | None]
    values: Sequence[float | None]
    ratios: Sequence[ComparedRatioDocument | None]
    """Of the runs after the first, to the first."""


class SideBySideDocument(TypedDict):
    """history compare ID ID --json, and compare --from-run ID --json."""

    schema: SchemaVersion
    run_ids: Annotated[list[str], Field(min_length=2, max_length=4)]
    differences: list[DifferenceDocument]
    figures: list[ComparedFigureDocument]
    agreement: Agreement
    """Whether each side's objective and each speed-up is the same within the intervals of both runs."""
    warnings: list[MessageDocument]
    """Why the figures can't be compared, or only with care."""


def side_by_side_document(beside: SideBySide, locale: Locale = "en") -> SideBySideDocument:
    return {
        "schema": SCHEMA_VERSION,
        "run_ids": [run.id for run in beside.runs],
        "differences": [{"key": item.key, "values": item.values} for item in beside.differences],
        "figures": [
            {
                "figure": row.figure,
                "labels": row.labels,
                "values": row.values,
                "ratios": [
                    None if ratio is None else {"ratio": ratio.ratio, "interval": ratio.interval}
                    for ratio in row.ratios
                ],
            }
            for row in beside.rows
        ],
        "agreement": beside.changes.agreement,
        "warnings": [message_document(warning, locale) for warning in beside.warnings],
    }
