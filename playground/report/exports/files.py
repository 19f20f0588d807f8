"""A run or a sweep of the history as one file: complete JSON, a table of its figures, or a self-contained page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Literal

from playground.domain.errors import InvalidInput
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale
from playground.report.documents.comparison import compare_document
from playground.report.documents.parts import json_text
from playground.report.html import html_report, sweep_html
from playground.report.sweep import sweep_document
from playground.report.sweep.table import sweep_csv
from playground.store.transfer import dumped

from .csv_text import csv_text
from .vllm_bench import vllm_bench_text

# original: an imported result, as its tool wrote it.
Format = Literal["json", "csv", "html", "vllm-bench", "original"]


def formats_of(record: Run | Sweep) -> tuple[Format, ...]:
    """What it can be exported as."""
    imported = isinstance(record, Run) and record.mode == "imported"
    if imported:
        return ("json", "csv", "html", "original")
    runs = [record] if isinstance(record, Run) else [point.run for point in record.points if point.run is not None]
    requests = any(side.requests for run in runs for side in run.sides)
    return ("json", "csv", "html", *(("vllm-bench",) if requests else ()))


def exported(record: Run | Sweep, form: Format, locale: Locale = "en", *, side: str | None = None) -> str:
    """The file's text. `side`: of vllm-bench, only the side with this label. Raises InvalidInput for a format that
    it can't be exported as."""
    reported = record.sides[0].reported if isinstance(record, Run) else None
    if reported is not None and (form == "original" or (form, reported.tool) == ("vllm-bench", "vllm_bench")):
        return reported.document
    if form not in formats_of(record):
        raise InvalidInput("export.format", id=record.id, formats=", ".join(formats_of(record)))
    if form == "vllm-bench":
        return vllm_bench_text(record, side)
    if isinstance(record, Sweep):
        if form == "json":
            return json_text({**sweep_document(SweepAnalysis.of(record), locale), "record": dumped(record)})
        return sweep_csv(SweepAnalysis.of(record)) if form == "csv" else sweep_html(record, locale)
    if form == "json":
        return json_text({**compare_document(record, locale), "record": dumped(record)})
    return run_csv(record) if form == "csv" else html_report(record, locale)


def run_csv(run: Run) -> str:
    """One line a chunk: the raw timings, from which every figure follows. Of an imported run one line a figure."""
    if run.mode == "imported":
        return csv_text([("run_id", "side", "figure", "value"), *_figure_rows(run)])
    heads = ("run_id", "side", "round", "request", "sent_ms", "chunk", "ms_since_send", "tokens", "text")
    rows: list[Sequence[object]] = [heads]
    for side in run.sides:
        for trial in side.trials:
            for number, trace in enumerate(trial.requests):
                request = [run.id, side.label, trial.round, number, trace.sent_ms]
                for index, chunk in enumerate(trace.chunks):
                    rows.append([*request, index, chunk.ms, chunk.tokens, chunk.text])
    return csv_text(rows)


def _figure_rows(run: Run) -> Iterator[Sequence[object]]:
    """Distributions by their statistics, as in tpot_ms.mean."""
    for side in run.sides:
        for name, value in asdict(side_figures(side)).items():
            for key, part in value.items() if isinstance(value, dict) else [("", value)]:
                if isinstance(part, int | float):
                    yield run.id, side.label, f"{name}.{key}".rstrip("."), part
