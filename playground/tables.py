"""A measured run's figures as a person reads them: all sides in one table, each name with its definition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from .domain.metrics import Distribution, SideFigures, side_figures
from .domain.records import Run, SideRecord
from .facts import number, percent, whole
from .text import Locale, say, say_problem

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
    spread = {name: [_distribution(side, name) for side in sides] for name in DISTRIBUTIONS}
    single = {name: [[_single(side)[name]] for side in sides] for name in _single(sides[0])}
    return Tables(
        [_row(name, cells, locale) for name, cells in spread.items()],
        [_row(name, cells, locale) for name, cells in single.items()],
    )


def errors(side: SideRecord, locale: Locale = "en") -> list[str]:
    """Each kind of error once, with how many requests met it and what the first one said."""
    problems = [trace.problem for trace in side.requests if trace.problem]
    kinds = Counter(problem.message_id for problem in problems)
    first = {problem.message_id: problem for problem in reversed(problems)}
    return [f"{count} × {say_problem(first[kind], locale)}" for kind, count in kinds.items()]


def _ended(side: SideRecord) -> SideRecord:
    return replace(side, trials=[trial for trial in side.trials if trial.complete])


def _row(name: str, cells: list[list[str]], locale: Locale) -> Row:
    return Row(say(f"figure.{name}", locale), say(f"figure.{name}_help", locale), cells)


def _distribution(side: SideFigures, name: str) -> list[str]:
    found: Distribution | None = getattr(side, f"{name}_ms")
    if found is None:
        return ["-"] * len(STATISTICS)
    about = "~" if side.approximate and name == "tpot" else ""
    return [*(about + number(getattr(found, column)) for column in STATISTICS[:-1]), str(found.n)]


def _single(side: SideFigures) -> dict[str, str]:
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
