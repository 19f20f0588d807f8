"""A sweep over one knob: figures against its values, with 95% intervals and predictions beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from playground.domain.speculation.prediction import Prediction
from playground.domain.sweep.analysis import LATENCIES, OverRounds, PointResult, SideResult

from .figure import COLOURS, Chart, with_one
from .knob_axis import KnobAxis
from .swept import SweepContext

Pick = Callable[[SideResult], OverRounds]
# Of a range without a likeliest value between its ends.
BAND_WIDTH = 9
BAND_OPACITY = 0.35


def curves(swept: SweepContext) -> dict[str, Chart]:
    """In reading order: what it buys, by what it was judged, then the field's other figures."""
    axis, objective = KnobAxis(swept.sweep.plan.knobs[0]), swept.sweep.case.workload.objective
    made = {"speed_up": speed_up(swept, axis)}
    made["objective"] = _curve(
        swept, axis, f"by_{objective}", f"chart.{objective}", lambda side: OverRounds(side.value, side.interval)
    )
    if objective != "throughput":
        made["throughput"] = _curve(swept, axis, "by_throughput", "chart.throughput", lambda side: side.throughput)
    for name in LATENCIES[:2]:
        made[name] = _curve(swept, axis, f"median_{name}", f"chart.{name}", _median(name))
    return made


def _median(name: str) -> Pick:
    return lambda side: side.medians[name]


def _curve(swept: SweepContext, axis: KnobAxis, title: str, y: str, pick: Pick) -> Chart:
    """One line a side."""
    figure = swept.against(axis, swept.text(title), y)
    for index, label in enumerate(swept.labels):
        known = [(point, pick(side)) for point, side in swept.of(label)]
        _add(figure, swept, axis, index, label, known)
    return swept.finished(figure, axis)


def speed_up(swept: SweepContext, axis: KnobAxis) -> Chart:
    """Each other side over the first, the line where they are equal, and what was predicted."""
    baseline, *others = swept.labels
    figure = swept.against(axis, swept.text("speed_up", baseline=baseline), "chart.ratio")
    figure["layout"]["yaxis"]["rangemode"] = "normal"
    for index, label in enumerate(others, start=1):
        known = [
            (point, OverRounds(side.verdict.speed_up, side.verdict.interval))
            for point, side in swept.of(label)
            if side.verdict is not None
        ]
        _add(figure, swept, axis, index, label, known)
        _add_predicted(figure, swept, axis, index, label)
    return swept.finished(with_one(figure), axis)


def _add(
    figure: Chart,
    swept: SweepContext,
    axis: KnobAxis,
    index: int,
    label: str,
    found: Sequence[tuple[PointResult, OverRounds]],
) -> None:
    """A side's line. Neighbours are joined where the knob has an order."""
    known = [(axis.at(point.values[0]), point, one) for point, one in found if one.value is not None]
    known.sort(key=lambda item: item[0])
    if not known:
        return
    trace = _points([x for x, _, _ in known], [one.value for _, _, one in known], COLOURS[index])
    trace |= {
        "mode": "lines+markers" if axis.numeric else "markers",
        "name": escape(label),
        "error_y": _bars([(one.value, one.interval) for _, _, one in known], COLOURS[index]),
        "customdata": [point.run_id for _, point, _ in known],
        "text": [f"{swept.told(point)}<br>{_interval(one)}" for _, point, one in known],
    }
    figure["data"].append(trace)


def _add_predicted(figure: Chart, swept: SweepContext, axis: KnobAxis, index: int, label: str) -> None:
    """Fits as a dashed line with the interval of each, beside the measurement; ranges as bars without a middle."""
    found = [
        (axis.at(point.values[0]), point, one)
        for point in swept.points
        if (one := swept.predicted.get((point.number, label))) is not None
    ]
    found.sort(key=lambda item: item[0])
    fits = [item for item in found if item[2].speed_up is not None]
    ranges = [item for item in found if item[2].speed_up is None and item[2].interval is not None]
    if fits:
        trace = _points([x for x, _, _ in fits], [one.speed_up for _, _, one in fits], COLOURS[index])
        trace |= {"mode": "lines+markers", "name": swept.text("predicted", side=label), "opacity": 0.75}
        trace["line"] |= {"dash": "dash", "width": 1.5}
        trace["marker"] = {"symbol": "diamond-open", "size": 9}
        trace["error_y"] = _bars([(one.speed_up, one.interval) for _, _, one in fits], COLOURS[index])
        figure["data"].append(_with_points(trace, swept, fits))
    if ranges:
        ends = [one.interval for _, _, one in ranges if one.interval is not None]
        middles = [(low + high) / 2 for low, high in ends]
        trace = _points([x for x, _, _ in ranges], middles, COLOURS[index])
        trace |= {"mode": "markers", "name": swept.text("predicted_range", side=label), "opacity": BAND_OPACITY}
        bars = _bars(list(zip(middles, ends, strict=True)), COLOURS[index])
        # No mark at the middle of a range; in the legend there is one.
        figure["layout"]["legend"]["itemsizing"] = "constant"
        trace |= {
            "marker": {"size": 1, "color": COLOURS[index]},
            "error_y": {**bars, "thickness": BAND_WIDTH, "width": 0},
        }
        figure["data"].append(_with_points(trace, swept, ranges))


def _with_points(
    trace: dict[str, Any], swept: SweepContext, found: Sequence[tuple[float, PointResult, Prediction]]
) -> dict[str, Any]:
    text = [
        f"{swept.told(point)}<br>{_interval(OverRounds(one.speed_up, one.interval))}" for _, point, one in found
    ]
    return trace | {"customdata": [point.run_id for _, point, _ in found], "text": text}


def _points(x: Sequence[float], y: Sequence[float | None], colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": list(x),
        "y": list(y),
        "line": {"color": colour},
        "marker": {"color": colour},
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }


def _interval(known: OverRounds) -> str:
    value = "" if known.value is None else f"{known.value:.4g}"
    return value if known.interval is None else f"{value} [{known.interval[0]:.4g}, {known.interval[1]:.4g}]"


def _bars(found: Sequence[tuple[float | None, tuple[float, float] | None]], colour: str) -> dict[str, Any]:
    """Error bars down and up to the interval's ends; none where there is no interval."""
    above = [None if ends is None or value is None else ends[1] - value for value, ends in found]
    below = [None if ends is None or value is None else value - ends[0] for value, ends in found]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "color": colour}
