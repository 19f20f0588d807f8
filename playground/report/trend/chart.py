"""The chart of a trend: a mark for each run with its interval, and a line across where something changed."""

from __future__ import annotations

from playground.i18n import Locale, say, say_message
from playground.report.charts.chart import COLOURS, Chart, titled, with_equality_line

from .trend import Kind, Trend

MOST_TICKS = 6
DASHES: dict[Kind, str] = {"version": "solid", "driver": "dash", "machine": "dash", "settings": "dot"}


def trend_chart(trend: Trend, locale: Locale) -> Chart:
    """Runs in their order, evenly spaced: dates lie together and far apart."""
    chart = titled(trend.preset, "", say(f"trend.{trend.figure}_axis", locale))
    points, layout = trend.points, chart["layout"]
    places = list(range(len(points)))
    layout["yaxis"]["rangemode"] = "normal"
    step = -(-len(points) // MOST_TICKS)
    layout["xaxis"] |= {
        "range": [-0.5, len(points) - 0.5],
        "tickvals": places[::step],
        "ticktext": [point.created_at[:10] for point in points[::step]],
    }
    if trend.figure == "speed_up":
        with_equality_line(chart)
    layout.setdefault("shapes", [])
    for change in trend.changes:
        line = {"color": "rgba(128,128,128,.9)", "width": 1, "dash": DASHES[change.kind]}
        at = change.at - 0.5
        layout["shapes"].append(
            {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": at, "x1": at, "line": line}
        )
    ends = [point.interval for point in points]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [end and end[1] - point.value for end, point in zip(ends, points, strict=True)],
        "arrayminus": [end and point.value - end[0] for end, point in zip(ends, points, strict=True)],
    }
    chart["data"].append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": places,
            "y": [point.value for point in points],
            "text": [f"{point.created_at[:16].replace('T', ' ')} {point.value:.3g}" for point in points],
            "marker": {"color": COLOURS[1 if trend.figure == "speed_up" else 0], "size": 9},
            "error_y": bars,
        }
    )
    return chart


def trend_text(trend: Trend, locale: Locale = "en") -> str:
    """The one sentence."""
    return "; ".join(say_message(sentence, locale) for sentence in trend.sentences)
