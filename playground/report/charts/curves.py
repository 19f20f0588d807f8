"""A sweep over one knob: figures against its values, with 95% intervals and predictions beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from playground.domain.sweep.result import LATENCIES, PointResult, SideResult

from .chart import COLOURS, Chart, with_equality_line
from .knob_axis import KnobAxis
from .sweep_context import SweepContext

Interval = tuple[float, float] | None
# A side's figure at one point.
Pick = Callable[[SideResult], tuple[float | None, Interval]]
# The style of a range without a likeliest value between its ends.
BAND_WIDTH = 9
BAND_OPACITY = 0.35


class Placed(NamedTuple):
    """A point and its place on the axis."""

    x: float
    point: PointResult
    value: float | None
    interval: Interval


def curves(context: SweepContext) -> dict[str, Chart]:
    """In reading order: the speed-up, the deciding figure, then the field's other figures."""
    axis, objective = KnobAxis(context.sweep.plan.knobs[0]), context.objective
    charts = {"speed_up": speed_up(context, axis)}
    charts["objective"] = _curve(context, axis, f"by_{objective}", f"chart.{objective}", _objective)
    if objective != "throughput":
        charts["throughput"] = _curve(context, axis, "by_throughput", "chart.throughput", _throughput)
    for name in LATENCIES[:2]:
        charts[name] = _curve(context, axis, f"median_{name}", f"chart.{name}", _median(name))
    return charts


def _objective(side: SideResult) -> tuple[float | None, Interval]:
    return side.objective.value, side.objective.interval


def _throughput(side: SideResult) -> tuple[float | None, Interval]:
    return side.throughput.value, side.throughput.interval


def _median(name: str) -> Pick:
    return lambda side: (side.medians[name].value, side.medians[name].interval)


def _curve(context: SweepContext, axis: KnobAxis, title: str, y: str, pick: Pick) -> Chart:
    """A figure at each point, one line a side."""
    figure = context.against(axis, context.text(title), y)
    for index, label in enumerate(context.labels):
        placed = [Placed(axis.at(point.values[0]), point, *pick(side)) for point, side in context.of(label)]
        _add(figure, context, axis, index, label, placed)
    return context.finished(figure, axis)


def speed_up(context: SweepContext, axis: KnobAxis) -> Chart:
    """Each other side's speed-up over the first, measured and predicted, with a line where the sides are equal."""
    baseline, *others = context.labels
    figure = context.against(axis, context.text("speed_up", baseline=baseline), "chart.ratio")
    figure["layout"]["yaxis"]["rangemode"] = "normal"
    for index, label in enumerate(others, start=1):
        placed = [
            Placed(axis.at(point.values[0]), point, side.verdict.speed_up, side.verdict.interval)
            for point, side in context.of(label)
            if side.verdict is not None
        ]
        _add(figure, context, axis, index, label, placed)
        _add_predicted(figure, context, axis, index, label)
    return context.finished(with_equality_line(figure), axis)


def _add(
    figure: Chart, context: SweepContext, axis: KnobAxis, index: int, label: str, placed: Sequence[Placed]
) -> None:
    """Add a side's line. Neighbours are joined where the knob has an order."""
    known = sorted((item for item in placed if item.value is not None), key=lambda item: item.x)
    if known:
        trace = _points(context, known, COLOURS[index])
        # Points without an interval are not joined: a line would claim a course that nobody has measured.
        joined = axis.numeric and any(item.interval is not None for item in known)
        trace |= {"mode": "lines+markers" if joined else "markers", "name": escape(label)}
        figure["data"].append(trace | {"error_y": _bars(known, COLOURS[index])})


def _add_predicted(figure: Chart, context: SweepContext, axis: KnobAxis, index: int, label: str) -> None:
    """Add the predictions: fits as a dashed line with the interval of each; ranges as bars without a middle."""
    placed = [
        Placed(axis.at(point.values[0]), point, prediction.speed_up, prediction.interval)
        for point in context.analysis.points
        if (prediction := context.analysis.predictions.get((point.number, label))) is not None
    ]
    placed.sort(key=lambda item: item.x)
    fits = [item for item in placed if item.value is not None]
    ranges = [item for item in placed if item.value is None and item.interval is not None]
    if fits:
        trace = _points(context, fits, COLOURS[index])
        trace |= {"mode": "lines+markers", "name": context.text("predicted", side=label), "opacity": 0.75}
        trace["line"] |= {"dash": "dash", "width": 1.5}
        trace["marker"] = {"symbol": "diamond-open", "size": 9}
        figure["data"].append(trace | {"error_y": _bars(fits, COLOURS[index])})
    if ranges:
        middles = [item._replace(value=sum(item.interval) / 2) for item in ranges if item.interval is not None]
        trace = _points(context, ranges, COLOURS[index]) | {"y": [item.value for item in middles]}
        trace |= {"mode": "markers", "name": context.text("predicted_range", side=label), "opacity": BAND_OPACITY}
        # A range has no mark at its middle, but one in the legend.
        figure["layout"]["legend"]["itemsizing"] = "constant"
        trace["marker"]["size"] = 1
        bars = _bars(middles, COLOURS[index]) | {"thickness": BAND_WIDTH, "width": 0}
        figure["data"].append(trace | {"error_y": bars})


def _points(context: SweepContext, placed: Sequence[Placed], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [item.x for item in placed],
        "y": [item.value for item in placed],
        "line": {"color": colour},
        "marker": {"color": colour},
        "customdata": [item.point.run_id for item in placed],
        "text": [f"{context.described(item.point)}<br>{_text(item)}" for item in placed],
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }


def _text(item: Placed) -> str:
    value = "" if item.value is None else f"{item.value:.4g}"
    return value if item.interval is None else f"{value} [{item.interval[0]:.4g}, {item.interval[1]:.4g}]"


def _bars(placed: Sequence[Placed], colour: str) -> dict[str, Any]:
    """Error bars down and up to the interval's ends; none where there is no interval."""
    known = [(item.value, item.interval) for item in placed]
    above = [None if ends is None or value is None else ends[1] - value for value, ends in known]
    below = [None if ends is None or value is None else value - ends[0] for value, ends in known]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "color": colour}
