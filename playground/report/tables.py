"""A measured run's figures as a person reads them: all sides in one table, each name with its definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from playground.domain.answers.accuracy import SideAccuracy, run_accuracy
from playground.domain.record.metrics import Distribution, SideFigures, side_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.i18n import Locale, say, say_message

from .figures import number, percent, whole

DISTRIBUTIONS = ("ttft", "tpot", "itl", "chunk_gap", "e2el")
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "n")


@dataclass(frozen=True)
class Row:
    """One figure. `cells` has an entry for each side: one text, or one for each of STATISTICS."""

    name: str
    definition: str
    cells: list[list[str]]


@dataclass(frozen=True)
class Tables:
    """Distributions (in milliseconds), and the figures that have a single value."""

    distributions: list[Row]
    single: list[Row]


def tables(run: Run, locale: Locale = "en") -> Tables:
    """While the run goes on, of the trials that have ended: a half one would lack its slowest requests."""
    limits = run.measurement.limits if run.measurement else None
    sides = [side_figures(_ended(side) if run.status == "running" else side, limits) for side in run.sides]
    spread = {name: [distribution(side, name) for side in sides] for name in DISTRIBUTIONS}
    single = {name: [[single_values(side)[name]] for side in sides] for name in single_values(sides[0])}
    if accuracy := run_accuracy(run):
        single["accuracy"] = [[_accuracy(side)] for side in accuracy.sides]
    return Tables(
        [_row(name, cells, locale) for name, cells in spread.items()],
        [_row(name, cells, locale) for name, cells in single.items()],
    )


def _accuracy(side: SideAccuracy) -> str:
    if side.interval is None:
        return "-"
    low, high = side.interval
    return f"{percent(side.share)} ({percent(low)} - {percent(high)})"


def errors(traces: Sequence[RequestTrace], locale: Locale = "en") -> list[str]:
    """Each kind of error once, with how many requests met it and what the first one said."""
    problems = [trace.problem for trace in traces if trace.problem]
    kinds = Counter(problem.message_id for problem in problems)
    first = {problem.message_id: problem for problem in reversed(problems)}
    return [f"{count} × {say_message(first[kind], locale)}" for kind, count in kinds.items()]


def _ended(side: SideRecord) -> SideRecord:
    return replace(side, trials=[trial for trial in side.trials if trial.complete])


def _row(name: str, cells: list[list[str]], locale: Locale) -> Row:
    return Row(say(f"figure.{name}", locale), say(f"figure.{name}_help", locale), cells)


def distribution(side: SideFigures, name: str) -> list[str]:
    """One text for each of STATISTICS; `name` is one of DISTRIBUTIONS."""
    found: Distribution | None = getattr(side, f"{name}_ms")
    if found is None:
        return ["-"] * len(STATISTICS)
    about = "~" if side.approximate and name == "tpot" else ""
    return [*(about + number(getattr(found, column)) for column in STATISTICS[:-1]), str(found.n)]


def single_values(side: SideFigures) -> dict[str, str]:
    """By the name under `figure.`, in reading order."""
    return {
        "output_rate": number(side.output_tokens_per_s),
        "total_rate": number(side.total_tokens_per_s),
        "request_rate": number(side.requests_per_s),
        "goodput": number(side.goodput_requests_per_s),
        "acceptance": percent(side.acceptance_rate),
        "acceptance_length": number(side.mean_acceptance_length),
        "coverage": percent(side.draft_coverage),
        "tokens_per_step": number(side.tokens_per_step),
        "tokens": whole(side.output_tokens),
        "requests": whole(side.requests),
        "errors": whole(sum(side.errors.values())),
    }
