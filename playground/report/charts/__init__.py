"""A run or a sweep -> plotly figures. Live, from the history, and in an exported page they are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from playground.domain.record.run import Run
from playground.i18n import Locale

from .chart import Chart, translucent
from .measured import outcomes, over_time
from .race import race_charts
from .svg import svg
from .sweep import sweep_charts

# Of up to four runs, by their place.
RUN_DASHES = ("solid", "dash", "dot", "dashdot")

__all__ = [
    "Chart",
    "charts_of",
    "informative",
    "outcomes",
    "over_time",
    "overlaid",
    "race_charts",
    "svg",
    "sweep_charts",
]


def charts_of(run: Run, locale: Locale) -> dict[str, Chart]:
    """All charts of a run by name, in reading order."""
    if run.measurement is None:
        return race_charts(run, locale)
    if run.mode == "imported":
        return {}
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


def overlaid(runs: Sequence[Run], names: Sequence[str], locale: Locale) -> dict[str, Chart]:
    """The charts that all of these runs have, each drawn as one: a side keeps its colour, and a run has a dash of
    its own. `names` tell the runs apart."""
    of_runs = [informative(charts_of(run, locale))[0] for run in runs]
    common = [name for name in of_runs[0] if all(name in figures for figures in of_runs)]
    drawn = {
        name: {
            **of_runs[0][name],
            "data": [
                trace
                for index, figures in enumerate(of_runs)
                for trace in _of_one(figures[name], index, escape(names[index]))
            ],
        }
        for name in common
    }
    return {name: figure for name, figure in drawn.items() if figure["data"]}


def _of_one(figure: Chart, index: int, name: str) -> Iterator[Chart]:
    """Its bars and solid lines: bands, single points and what is dashed already would not be told apart."""
    for trace in figure["data"]:
        named = {"name": f"{trace.get('name')} · {name}", "showlegend": True}
        line = trace.get("line", {})
        if trace["type"] == "bar":
            yield {**trace, **named, "marker": {"color": translucent(trace["marker"]["color"], 1 / (index + 1))}}
        elif "lines" in trace["mode"] and line.get("dash", "solid") == "solid" and line.get("width") != 0:
            # Error bars of two runs at one place would cover each other.
            bare = {key: value for key, value in trace.items() if key != "error_y"}
            yield {**bare, **named, "mode": "lines", "line": {**line, "dash": RUN_DASHES[index]}}
