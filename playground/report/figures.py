"""The figures: their names, units and definitions, and how they are printed.

The page's tables, the exported page, the command line and the documents' schema read this list. A new figure needs
a field of SideFigures, an entry here, and its name and definition among the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from playground.domain.record.figures import Distribution, SideFigures
from playground.i18n import Locale, say

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "n")
# With fewer values a percentile is little more than the largest of them.
LEAST_N = {"p90": 10, "p95": 20, "p99": 100}


def statistics_heads(locale: Locale) -> list[str]:
    """The names of STATISTICS; percentiles and n are called the same everywhere."""
    return [say("figure.mean", locale), *STATISTICS[1:]]


def number(value: float | None) -> str:
    """Three significant digits, or "-"."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def whole(value: int | None) -> str:
    return "-" if value is None else str(value)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _total(counts: Mapping[str, int]) -> str:
    return str(sum(counts.values()))


@dataclass(frozen=True, slots=True)
class Figure:
    """`id`: the field of SideFigures or RequestFigures, with its unit. `text` prints a value; unknown is "-"."""

    id: str
    text: Callable[[Any], str] = number

    def label(self, locale: Locale = "en") -> str:
        return say(f"figure.{self.id}", locale)

    def definition(self, locale: Locale = "en") -> str:
        return say(f"figure.{self.id}_help", locale)

    def cell(self, side: SideFigures) -> str:
        """The text of a figure with a single value."""
        return self.text(getattr(side, self.id))

    def cells(self, side: SideFigures) -> list[str]:
        """The texts of a distribution, one for each of STATISTICS. "~": TPOT from the final usage alone."""
        values: Distribution | None = getattr(side, self.id)
        if values is None:
            return ["-"] * len(STATISTICS)
        mark = "~" if side.approximate and self.id == "tpot_ms" else ""
        texts = [
            mark + self.text(getattr(values, column))
            if values.n is None or values.n >= LEAST_N.get(column, 1)
            else "-"
            for column in STATISTICS[:-1]
        ]
        return [*texts, whole(values.n)]


# In reading order.
DISTRIBUTIONS = tuple(Figure(name) for name in ("ttft_ms", "tpot_ms", "itl_ms", "chunk_gap_ms", "e2el_ms"))
SINGLE_VALUES = (
    Figure("output_tokens_per_s"),
    Figure("total_tokens_per_s"),
    Figure("requests_per_s"),
    Figure("goodput_requests_per_s"),
    Figure("acceptance_rate", percent),
    Figure("mean_acceptance_length"),
    Figure("draft_coverage", percent),
    Figure("tokens_per_step"),
    Figure("energy_per_output_token_j"),
    Figure("cost_per_million_output_tokens"),
    Figure("output_tokens", whole),
    Figure("requests", whole),
    Figure("errors", _total),
)
# In a race: the first request's figures, then the engine's.
RACE = (
    Figure("decode_tokens_per_s"),
    Figure("ttft_ms", milliseconds),
    Figure("tpot_ms", milliseconds),
    Figure("output_tokens", whole),
    Figure("tokens_per_step"),
    Figure("acceptance_rate", percent),
    Figure("mean_acceptance_length"),
)
# Computed from the answers to the built-in tasks, unlike all other figures.
ACCURACY = Figure("accuracy", percent)
