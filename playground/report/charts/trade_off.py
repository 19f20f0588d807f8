"""Throughput against latency: what each point of a sweep gives up for what."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from playground.domain.sweep.analysis import PointResult, pareto_front
from playground.i18n import say

from .figure import COLOURS, Chart, noted
from .knob_axis import short
from .swept import SweepContext

# Longer names lie over each other: they stand beside the pointer alone.
LONGEST_NAME = 12


def trade_offs(swept: SweepContext) -> dict[str, Chart]:
    return {f"trade_off_{name}": _trade_off(swept, name) for name in ("tpot", "e2el")}


def _trade_off(swept: SweepContext, name: str) -> Chart:
    """Every side at every point; joined are those that no other one beats in both."""
    x, y = (say(f"chart.{one}", swept.locale) for one in (name, "throughput"))
    figure = swept.figure(swept.text(f"trade_off_{name}"), x, y)
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis]["rangemode"] = "normal"
    by_side = [_known(swept, label, name) for label in swept.labels]
    front = pareto_front((latency, rate) for known in by_side for latency, rate, _ in known)
    for index, (label, known) in enumerate(zip(swept.labels, by_side, strict=True)):
        if known:
            # What is best is looked for, and lies apart; the rest often lies in heaps.
            names = [_name(point) if (latency, rate) in front else "" for latency, rate, point in known]
            fits = max(map(len, names)) <= LONGEST_NAME
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
    _mark_front(figure, swept, front)
    return noted(figure, "curve.nothing", swept.locale)


def _known(swept: SweepContext, label: str, name: str) -> list[tuple[float, float, PointResult]]:
    """Latency and throughput of one side at each point that has both."""
    return [
        (latency, rate, point)
        for point, side in swept.of(label)
        if (latency := side.medians[name].value) is not None and (rate := side.throughput.value) is not None
    ]


def _name(point: PointResult) -> str:
    return ", ".join(short(value) for value in point.values)


def _mark_front(figure: Chart, swept: SweepContext, front: Sequence[tuple[float, float]]) -> None:
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
