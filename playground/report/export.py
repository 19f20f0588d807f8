"""A run or a sweep of the history as one file: complete JSON, a table of its figures, or a self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from playground.domain.record.run import Run
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale
from playground.store.transfer import dumped

from .csv_text import csv_text
from .documents.comparison import compare_document
from .documents.parts import json_text
from .html import html_report, sweep_html
from .sweep import sweep_document
from .sweep_table import sweep_csv

Format = Literal["json", "csv", "html"]


def exported(record: Run | Sweep, form: Format, locale: Locale = "en") -> str:
    """The file's text."""
    if isinstance(record, Sweep):
        if form == "json":
            return json_text({**sweep_document(SweepAnalysis.of(record), locale), "record": dumped(record)})
        return sweep_csv(SweepAnalysis.of(record)) if form == "csv" else sweep_html(record, locale)
    if form == "json":
        return json_text({**compare_document(record, locale), "record": dumped(record)})
    return run_csv(record) if form == "csv" else html_report(record, locale)


def run_csv(run: Run) -> str:
    """One line a chunk: the raw timings, from which every figure follows."""
    heads = ("run_id", "side", "round", "request", "sent_ms", "chunk", "ms_since_send", "tokens", "text")
    rows: list[Sequence[object]] = [heads]
    for side in run.sides:
        for trial in side.trials:
            for number, trace in enumerate(trial.requests):
                request = [run.id, side.label, trial.round, number, trace.sent_ms]
                for index, chunk in enumerate(trace.chunks):
                    rows.append([*request, index, chunk.ms, chunk.tokens, chunk.text])
    return csv_text(rows)
