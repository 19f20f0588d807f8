"""Throughput against latency: the trade-off between them at the points of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from playground.domain.sweep.result import PointResult
from playground.i18n import say

from .chart import COLOURS, Chart, noted
from .knob_axis import short
from .sweep_context import SweepContext

# Longer names would overlap: they appear beside the pointer only.
LONGEST_NAME = 12


class Placed(NamedTuple):
    """A side at one point."""

    latency: float
    rate: float
    point: PointResult
    certain: bool


def trade_offs(context: SweepContext) -> dict[str, Chart]:
    return {f"trade_off_{name}": _trade_off(context, name) for name in ("tpot", "e2el")}


def pareto_front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The (latency, throughput) pairs that no other pair beats in both, by rising latency."""
    front: list[tuple[float, float]] = []
    for latency, rate in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or rate > front[-1][1]:
            front.append((latency, rate))
    return front


def _trade_off(context: SweepContext, name: str) -> Chart:
    """Every side at every point; those that no other one beats in both are joined."""
    x, y = (say(f"chart.{figure}", context.locale) for figure in (name, "throughput"))
    figure = context.figure(context.text(f"trade_off_{name}"), x, y)
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis]["rangemode"] = "normal"
    by_side = [_placed(context, label, name) for label in context.labels]
    # A point without an interval may lie anywhere near: it is drawn, but no front is drawn through it.
    certain = [item for placed in by_side for item in placed if item.certain]
    front = pareto_front((item.latency, item.rate) for item in certain)
    for index, (label, placed) in enumerate(zip(context.labels, by_side, strict=True)):
        if placed:
            figure["data"].append(_marks(context, placed, front) | {"name": escape(label)})
            figure["data"][-1]["marker"] = {"color": COLOURS[index], "size": 9}
    if len(front) > 1:
        figure["data"].append(_front(context, front))
    return noted(figure, "curve.nothing", context.locale)


def _placed(context: SweepContext, label: str, name: str) -> list[Placed]:
    """One side at each point that has both figures."""
    return [
        Placed(latency, rate, point, side.throughput.interval is not None)
        for point, side in context.of(label)
        if (latency := side.medians[name].value) is not None and (rate := side.throughput.value) is not None
    ]


def _marks(
    context: SweepContext, placed: Sequence[Placed], front: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    # The best points lie apart and can be labelled; the rest often overlap.
    names = [_name(item.point) if (item.latency, item.rate) in front else "" for item in placed]
    fits = max(map(len, names)) <= LONGEST_NAME
    return {
        "type": "scatter",
        "mode": "markers+text" if fits else "markers",
        "x": [item.latency for item in placed],
        "y": [item.rate for item in placed],
        "text": names,
        "cliponaxis": False,
        "textposition": "top center",
        "textfont": {"size": 10},
        "customdata": [item.point.run_id for item in placed],
        "hovertext": [context.described(item.point) for item in placed],
        "hovertemplate": "%{hovertext}<br>%{x:.4g}, %{y:.4g}<extra>%{fullData.name}</extra>",
    }


def _name(point: PointResult) -> str:
    return ", ".join(short(value) for value in point.values)


def _front(context: SweepContext, front: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [latency for latency, _ in front],
        "y": [rate for _, rate in front],
        "name": context.text("front"),
        "line": {"color": "rgba(128,128,128,.9)", "width": 1.5, "dash": "dot"},
        "marker": {"symbol": "circle-open", "size": 15, "color": "rgba(128,128,128,.9)", "line": {"width": 1.5}},
        "hoverinfo": "skip",
    }
