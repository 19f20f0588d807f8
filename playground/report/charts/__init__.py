"""A run or a sweep -> plotly figures. Live, from the history, and in an exported page they are the same."""

from __future__ import annotations

from playground.domain.record.run import Run
from playground.i18n import Locale

from .chart import Chart
from .measured import outcomes, over_time
from .race import race_charts
from .sweep import sweep_charts

__all__ = ["Chart", "charts_of", "outcomes", "over_time", "race_charts", "sweep_charts", "worth_showing"]


def charts_of(run: Run, locale: Locale) -> dict[str, Chart]:
    """All charts of a run by name, in reading order."""
    if run.measurement is None:
        return worth_showing(run, race_charts(run, locale))
    return worth_showing(run, {**outcomes(run, locale), **over_time(run, locale)})


def worth_showing(run: Run, figures: dict[str, Chart]) -> dict[str, Chart]:
    """Empty if the run has ended and none of its charts has data; otherwise the charts."""
    drawn = any(trace["y"] for figure in figures.values() for trace in figure["data"])
    return figures if drawn or run.status == "running" else {}
