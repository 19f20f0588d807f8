"""Throughput against latency: what each point of a sweep gives up for what."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..domain.sweep_results import pareto_front
from ..text import say
from .figure import COLOURS, Figure, noted
from .knob_axis import short
from .swept import Swept

# More or longer names than these lie over each other: they stand beside the pointer alone.
MOST_NAMED = 24
LONGEST_NAME = 12


def trade_offs(swept: Swept) -> dict[str, Figure]:
    return {f"trade_off_{name}": _trade_off(swept, name) for name in ("tpot", "e2el")}


def _trade_off(swept: Swept, name: str) -> Figure:
    """Every side at every point; joined are those that no other one beats in both."""
    x, y = (say(f"chart.{one}", swept.locale) for one in (name, "throughput"))
    figure = swept.figure(swept.text(f"trade_off_{name}"), x, y)
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis]["rangemode"] = "normal"
    every: list[tuple[float, float]] = []
    for index, label in enumerate(swept.labels):
        known = [
            (latency, rate, point)
            for point, side in swept.of(label)
            if (latency := side.medians[name].value) is not None and (rate := side.throughput.value) is not None
        ]
        every += [(latency, rate) for latency, rate, _ in known]
        names = [", ".join(short(value) for value in point.values) for _, _, point in known]
        if known:
            fits = len(swept.points) <= MOST_NAMED and max(map(len, names)) <= LONGEST_NAME
            figure["data"].append(
                {
                    "type": "scatter",
                    "mode": "markers+text" if fits else "markers",
                    "x": [latency for latency, _, _ in known],
                    "y": [rate for _, rate, _ in known],
                    "name": escape(label),
                    "marker": {"color": COLOURS[index], "size": 9},
                    "text": names,
                    "cliponaxis": False,
                    "textposition": "top center",
                    "textfont": {"size": 10},
                    "customdata": [point.run_id for _, _, point in known],
                    "hovertext": [swept.told(point) for _, _, point in known],
                    "hovertemplate": "%{hovertext}<br>%{x:.4g}, %{y:.4g}<extra>%{fullData.name}</extra>",
                }
            )
    _mark_front(figure, swept, every)
    return noted(figure, "curve.nothing", swept.locale)


def _mark_front(figure: Figure, swept: Swept, every: Sequence[tuple[float, float]]) -> None:
    front = pareto_front(every)
    if front:
        ring = {"symbol": "circle-open", "size": 15, "color": "rgba(128,128,128,.9)", "line": {"width": 1.5}}
        figure["data"].append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [latency for latency, _ in front],
                "y": [rate for _, rate in front],
                "name": swept.text("front"),
                "line": {"color": "rgba(128,128,128,.9)", "width": 1.5, "dash": "dot"},
                "marker": ring,
                "hoverinfo": "skip",
            }
        )
