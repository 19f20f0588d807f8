"""A run or a sweep -> plotly figures. Live, from the history, and in an exported page they are the same."""

from __future__ import annotations

from ..domain.records import Run
from ..text import Locale
from .figure import Figure
from .measured import outcomes, over_time
from .race import race_charts
from .sweep import sweep_charts

__all__ = ["Figure", "charts_of", "outcomes", "over_time", "race_charts", "sweep_charts"]


def charts_of(run: Run, locale: Locale) -> dict[str, Figure]:
    """All charts of a run by name, in reading order."""
    if run.measurement is None:
        return race_charts(run, locale)
    return {**outcomes(run, locale), **over_time(run, locale)}
