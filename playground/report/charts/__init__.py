"""A run or a sweep -> plotly figures. Live, from the history, and in an exported page they are the same."""

from __future__ import annotations

from playground.domain.record.run import Run
from playground.i18n import Locale

from .chart import Chart
from .measured import outcomes, over_time
from .race import race_charts
from .svg import svg
from .sweep import sweep_charts

__all__ = ["Chart", "charts_of", "informative", "outcomes", "over_time", "race_charts", "svg", "sweep_charts"]


def charts_of(run: Run, locale: Locale) -> dict[str, Chart]:
    """All charts of a run by name, in reading order."""
    if run.measurement is None:
        return race_charts(run, locale)
    return {**outcomes(run, locale), **over_time(run, locale)}


def informative(figures: dict[str, Chart]) -> tuple[dict[str, Chart], list[str]]:
    """The charts that say something, and the titles of those that don't: nothing drawn, or lines that stay at one
    value throughout."""
    flat = {name for name, figure in figures.items() if not _says_something(figure)}
    kept = {name: figure for name, figure in figures.items() if name not in flat}
    return kept, [figures[name]["layout"]["title"]["text"] for name in figures if name in flat]


def _says_something(figure: Chart) -> bool:
    """Bars and maps always do."""
    traces = figure["data"]
    if any(trace["type"] != "scatter" for trace in traces):
        return any(len(trace["y"]) for trace in traces)
    values = {value for trace in traces for value in trace["y"] if value is not None}
    # Single points, too: their place and interval say something, but a line at one height does not.
    return len(values) > 1 or any(trace.get("error_y") for trace in traces if len(trace["y"]))
