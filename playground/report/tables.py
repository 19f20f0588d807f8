"""A measured run's figures for a reader: all sides in one table, each name with its definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from playground.domain.answers.accuracy import SideAccuracy, run_accuracy
from playground.domain.record.figures import Distribution, SideFigures
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.workload import Objective
from playground.i18n import Locale, say_message

from .figures import ACCURACY, DISTRIBUTIONS, SINGLE_VALUES, Figure, milliseconds, percent

# The first three of the four figures that matter, by objective. The fourth: acceptance where a side speculates.
KEY: dict[Objective, tuple[str, ...]] = {
    "tpot": ("tpot_ms", "ttft_ms", "output_tokens_per_s"),
    "ttft": ("ttft_ms", "tpot_ms", "output_tokens_per_s"),
    "throughput": ("output_tokens_per_s", "tpot_ms", "ttft_ms"),
    "goodput": ("goodput_requests_per_s", "ttft_ms", "tpot_ms"),
}
# What a request ends with whose run was stopped.
STOPPED = "stream.stopped"
KEY_FIGURES = {figure.id: figure for figure in (*DISTRIBUTIONS, *SINGLE_VALUES)}


@dataclass(frozen=True)
class Row:
    """One figure. `cells` has an entry for each side: one text, or one for each of STATISTICS."""

    name: str
    definition: str
    cells: list[list[str]]


@dataclass(frozen=True)
class Tables:
    """The figures that matter for the objective, as one text a side; then all of them: distributions (in
    milliseconds), and those that have a single value."""

    key: list[Row]
    distributions: list[Row]
    single: list[Row]


def tables(run: Run, locale: Locale = "en") -> Tables:
    """The figures; during the run, of the trials that have ended: an unfinished one would lack its slowest
    requests."""
    sides = [
        side_figures(_ended(side) if run.status == "running" else side, run.measurement) for side in run.sides
    ]
    distributions = [_row(figure, [figure.cells(side) for side in sides], locale) for figure in DISTRIBUTIONS]
    single = [_row(figure, [[figure.cell(side)] for side in sides], locale) for figure in SINGLE_VALUES]
    # Energy on a CPU, a cost without a price: what no side has is left out.
    single = [row for row in single if any(cell != ["-"] for cell in row.cells)]
    if accuracy := run_accuracy(run):
        single.append(_row(ACCURACY, [[_accuracy(side)] for side in accuracy.sides], locale))
    speculates = any(side.settings.speculates for side in run.sides)
    figures = KEY[run.workload.objective] + (("acceptance_rate",) if speculates else ("e2el_ms",))
    key = [_row(KEY_FIGURES[name], [[_key(name, side)] for side in sides], locale) for name in figures]
    return Tables(key, distributions, single)


def _key(name: str, side: SideFigures) -> str:
    """A single value, or a distribution's mean, which is what verdicts compare."""
    value = getattr(side, name)
    text = milliseconds(value.mean) if isinstance(value, Distribution) else KEY_FIGURES[name].text(value)
    return f"~{text}" if side.approximate and name == "tpot_ms" and value is not None else text


def _accuracy(side: SideAccuracy) -> str:
    if side.interval is None:
        return "-"
    low, high = side.interval
    return f"{percent(side.share)} ({percent(low)} - {percent(high)})"


def failed(trace: RequestTrace) -> bool:
    """Whether the request went wrong; a stream that a user stopped has not."""
    return trace.problem is not None and trace.problem.message_id != STOPPED


def errors(traces: Sequence[RequestTrace], locale: Locale = "en") -> list[str]:
    """Each kind of error once, with the number of requests that failed with it, and the first one's message."""
    problems = [trace.problem for trace in traces if trace.problem and failed(trace)]
    kinds = Counter(problem.message_id for problem in problems)
    first = {problem.message_id: problem for problem in reversed(problems)}
    return [f"{count} × {say_message(first[kind], locale)}" for kind, count in kinds.items()]


def _ended(side: SideRecord) -> SideRecord:
    return replace(side, trials=[trial for trial in side.trials if trial.complete])


def _row(figure: Figure, cells: list[list[str]], locale: Locale) -> Row:
    return Row(figure.label(locale), figure.definition(locale), cells)
