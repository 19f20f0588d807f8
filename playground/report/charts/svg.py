"""A chart as static SVG: what plotly.js would draw, without it. For one chart on the page and for saved pages.

It draws lines with markers, gaps, bands and error bars, bars, maps, and marks across the chart.
Texts that the charts hold are escaped already; `<br>` breaks a hovertext, which is the title of a mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import unescape
from itertools import count
from math import ceil, floor, isfinite, log10
from typing import Any

from .chart import Chart

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 46
LEGEND_LINE, CHARACTER = 18, 6.6
TICKS = 5
DASHES = {"dash": "6 4", "dot": "2 3", "solid": "none"}
NEUTRAL = "currentColor"
COLD, MIDDLE, WARM = (230, 159, 0), (247, 247, 247), (43, 140, 196)


class Axis:
    """From values to places. `low` and `high` are logarithms on a logarithmic axis."""

    def __init__(self, layout: dict[str, Any], values: Sequence[float], start: float, end: float) -> None:
        self.log = layout.get("type") == "log"
        self._layout = layout
        scaled = [log10(value) for value in values if value > 0] if self.log else list(values)
        low, high = min(scaled, default=0.0), max(scaled, default=1.0)
        if layout.get("rangemode") == "tozero" and not self.log:
            low, high = min(low, 0.0), max(high, 0.0)
        margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
        low = low if low == 0 else low - margin
        self.low: float
        self.high: float
        self.low, self.high = layout.get("range") or (low, high + margin)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        scaled = (log10(value) if value > 0 else self.low) if self.log else value
        return round(self._start + (scaled - self.low) / (self.high - self.low) * (self._end - self._start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Values and their texts."""
        if "tickvals" in self._layout:
            return list(zip(self._layout["tickvals"], self._layout["ticktext"], strict=True))
        if self.log:
            return [(10.0**power, f"{10.0**power:g}") for power in range(ceil(self.low), floor(self.high) + 1)]
        rough = (self.high - self.low) / TICKS
        power = 10.0 ** floor(log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        if self._layout.get("dtick"):
            step = max(step, self._layout["dtick"])
        numbers = [step * index for index in range(ceil(self.low / step), floor(self.high / step + 1e-9) + 1)]
        share = self._layout.get("tickformat") == ".0%"
        return [(number, f"{number:.0%}" if share else f"{number:.6g}") for number in numbers]


def svg(figure: Chart) -> str:
    """The chart; its texts take the colour of the page around it."""
    data = [trace for trace in figure["data"] if trace["type"] != "contour"]
    layout = figure["layout"]
    names = [(str(trace["name"]), trace) for trace in data if trace.get("name") and trace.get("showlegend", True)]
    legend, lines = _legend(names)
    height = HEIGHT + LEGEND_LINE * lines
    main = [trace for trace in data if trace.get("yaxis") != "y2"]
    x = Axis(layout["xaxis"], _values(data, "x"), LEFT, WIDTH - RIGHT)
    y = Axis(layout["yaxis"], _heights(main, layout), HEIGHT - BOTTOM, TOP)
    beside = Axis({"range": [0, 1]}, (), HEIGHT - BOTTOM, TOP)
    title = layout["title"]["text"]
    parts = [f'<text x="8" y="18" font-size="14" font-weight="600">{title}</text>', *_grid(x, y, layout)]
    parts += [_shape(shape, x, y) for shape in layout.get("shapes", ())]
    bars, places = sum(trace["type"] == "bar" for trace in data), count()
    for index, trace in enumerate(data):
        if trace["type"] == "heatmap":
            parts += _map(trace, x, y)
        elif trace["type"] == "bar":
            parts += _bars(trace, x, y, next(places), bars)
        else:
            parts += _scatter(trace, data[index - 1], x, beside if trace.get("yaxis") == "y2" else y)
    parts += [
        f'<text x="{WIDTH / 2}" y="{HEIGHT / 2}" text-anchor="middle" opacity=".7">{note["text"]}</text>'
        for note in layout.get("annotations", ())
    ]
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title.replace(chr(34), "")}" '
        f'font-size="12" font-family="system-ui, sans-serif" fill="currentColor">{"".join(parts)}{legend}</svg>'
    )


def _values(data: Sequence[Chart], name: str) -> list[float]:
    return [value for trace in data for value in trace[name] if value is not None and isfinite(value)]


def _heights(data: Sequence[Chart], layout: Chart) -> list[float]:
    """All heights, with the ends of error bars and the marks across the chart."""
    heights = _values(data, "y")
    for trace in data:
        bars = trace.get("error_y")
        for value, above, below in zip(trace["y"], bars["array"], bars["arrayminus"], strict=True) if bars else ():
            if value is not None and above is not None and below is not None:
                heights += [value + above, value - below]
    return heights + [shape["y0"] for shape in layout.get("shapes", ()) if shape.get("xref") == "paper"]


def _grid(x: Axis, y: Axis, layout: Chart) -> list[str]:
    bottom = HEIGHT - BOTTOM
    parts = []
    for value, text in y.ticks():
        at = y.at(value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}" stroke="{NEUTRAL}" opacity=".15"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4}" text-anchor="end">{text}</text>')
    for value, text in x.ticks():
        parts.append(f'<text x="{x.at(value)}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    names = [layout[axis].get("title", {}).get("text", "") for axis in ("xaxis", "yaxis")]
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH) / 2}" y="{bottom + 36}" text-anchor="middle" opacity=".75">{names[0]}</text>'
    )
    turned = f'transform="rotate(-90 12 {middle})" text-anchor="middle" opacity=".75"'
    return [*parts, f'<text x="12" y="{middle}" {turned}>{names[1]}</text>']


def _shape(shape: Chart, x: Axis, y: Axis) -> str:
    across = shape.get("xref") == "paper"
    ends = (LEFT, WIDTH - RIGHT) if across else (x.at(shape["x0"]), x.at(shape["x1"]))
    heights = (y.at(shape["y0"]), y.at(shape["y1"])) if across else (HEIGHT - BOTTOM, TOP)
    line = shape["line"]
    return (
        f'<line x1="{ends[0]}" x2="{ends[1]}" y1="{heights[0]}" y2="{heights[1]}" stroke="{line["color"]}" '
        f'stroke-dasharray="{DASHES[line.get("dash", "solid")]}"/>'
    )


def _scatter(trace: Chart, before: Chart, x: Axis, y: Axis) -> list[str]:
    line, marker, mode = trace.get("line", {}), trace.get("marker", {}), trace.get("mode", "lines")
    colour = line.get("color") or marker.get("color") or NEUTRAL
    points = [
        None if value is None else (x.at(place), y.at(value))
        for place, value in zip(trace["x"], trace["y"], strict=True)
    ]
    opacity = trace.get("opacity", 1)
    parts = []
    if trace.get("fill") == "tonexty":
        back = [(x.at(place), y.at(value)) for place, value in zip(before["x"], before["y"], strict=True)][::-1]
        ring = " ".join(f"{across},{up}" for across, up in [*filter(None, points), *back])
        parts.append(f'<polygon points="{ring}" fill="{trace["fillcolor"]}"/>')
    elif "lines" in mode and line.get("width") != 0:
        style = f'stroke="{colour}" stroke-width="{line.get("width", 2)}" opacity="{opacity}" fill="none"'
        dash = DASHES[line.get("dash", "solid")]
        parts += [f'<polyline points="{run}" {style} stroke-dasharray="{dash}"/>' for run in _runs(points)]
    parts += _error_bars(trace, points, y, colour, opacity)
    if "markers" in mode:
        parts += [_marker(trace, index, at, colour) for index, at in enumerate(points) if at is not None]
    elif mode == "text":
        texts = zip(points, trace["text"], strict=True)
        parts += [
            f'<text x="{at[0]}" y="{at[1] + 4}" text-anchor="middle">{text}</text>' for at, text in texts if at
        ]
    return parts


def _runs(points: Sequence[tuple[float, float] | None]) -> list[str]:
    """The parts of a line between its gaps."""
    runs: list[list[str]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(f"{point[0]},{point[1]}")
    return [" ".join(run) for run in runs if len(run) > 1]


def _error_bars(
    trace: Chart, points: Sequence[tuple[float, float] | None], y: Axis, colour: str, opacity: float
) -> list[str]:
    bars = trace.get("error_y")
    if not bars:
        return []
    style = f'stroke="{colour}" stroke-width="{bars.get("thickness", 2)}" opacity="{opacity}"'
    return [
        f'<line x1="{at[0]}" x2="{at[0]}" y1="{y.at(value + above)}" y2="{y.at(value - below)}" {style}/>'
        for at, value, above, below in zip(points, trace["y"], bars["array"], bars["arrayminus"], strict=True)
        if at is not None and above is not None and below is not None
    ]


def _marker(trace: Chart, index: int, at: tuple[float, float], colour: str) -> str:
    marker = trace.get("marker", {})
    symbol, radius = marker.get("symbol", "circle"), min(marker.get("size", 7), 12) / 2
    texts = trace.get("text") or trace.get("hovertext")
    text = unescape(str(texts[index])).replace("<br>", ": ") if texts else ""
    title = f"<title>{text.replace('<', '&lt;')}</title>" if text else ""
    if symbol == "x":
        left, right, top, low = at[0] - radius, at[0] + radius, at[1] - radius, at[1] + radius
        cross = f"M{left} {top}L{right} {low}M{left} {low}L{right} {top}"
        return f'<path d="{cross}" stroke="{colour}" stroke-width="2">{title}</path>'
    open_mark = symbol.endswith("-open")
    style = f'fill="none" stroke="{colour}"' if open_mark else f'fill="{colour}"'
    return f'<circle cx="{at[0]}" cy="{at[1]}" r="{radius}" {style}>{title}</circle>'


def _bars(trace: Chart, x: Axis, y: Axis, place: int, of: int) -> list[str]:
    width = min(40.0, 0.8 * (x.at(1) - x.at(0)) / of) if not x.log else 20.0
    bottom = y.at(max(0.0, y.low))
    return [
        f'<rect x="{x.at(at) + (place - of / 2) * width:.1f}" width="{width:.1f}" y="{y.at(value)}" '
        f'height="{max(0.0, bottom - y.at(value)):.1f}" fill="{trace["marker"]["color"]}"/>'
        for at, value in zip(trace["x"], trace["y"], strict=True)
        if value is not None
    ]


def _map(trace: Chart, x: Axis, y: Axis) -> list[str]:
    """Cells coloured around the middle of a diverging scale, else by their rank between the ends."""
    values = [value for row in trace["z"] for value in row if value is not None]
    middle = trace.get("zmid", (min(values) + max(values)) / 2)
    reach = max(abs(value - middle) for value in values) or 1.0
    sign = -1 if trace.get("reversescale") else 1
    width, height = x.at(1) - x.at(0), y.at(0) - y.at(1)
    parts = []
    for row, line in enumerate(trace["z"]):
        for column, value in enumerate(line):
            if value is None:
                continue
            left, top = x.at(column) - width / 2, y.at(row) - height / 2
            cell = f'x="{left:.1f}" y="{top:.1f}" width="{width - 1:.1f}" height="{height - 1:.1f}"'
            parts.append(f'<rect {cell} fill="{_shade(sign * (value - middle) / reach)}"/>')
            text = trace["text"][row][column]
            parts.append(
                f'<text x="{x.at(column)}" y="{y.at(row) + 4}" text-anchor="middle" fill="#222">{text}</text>'
            )
    return parts


def _shade(share: float) -> str:
    """From COLD at -1 through MIDDLE to WARM at 1."""
    end = WARM if share > 0 else COLD
    mixed = (round(plain + abs(share) * (full - plain)) for plain, full in zip(MIDDLE, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _legend(names: Sequence[tuple[str, Chart]]) -> tuple[str, int]:
    """The names below the chart, and how many lines they take."""
    parts, across, line = [], float(LEFT), 0
    for name, trace in names:
        length = 24 + CHARACTER * len(unescape(name)) + 14
        if across + length > WIDTH and across > LEFT:
            across, line = float(LEFT), line + 1
        colour = (
            trace.get("line", {}).get("color") or trace.get("marker", {}).get("color") or trace.get("fillcolor")
        )
        y = HEIGHT + 6 + line * LEGEND_LINE
        dash = DASHES[trace.get("line", {}).get("dash", "solid")]
        mark = f'stroke="{colour or NEUTRAL}" stroke-width="4" stroke-dasharray="{dash}"'
        parts.append(f'<line x1="{across:.0f}" x2="{across + 18:.0f}" y1="{y - 4}" y2="{y - 4}" {mark}/>')
        parts.append(f'<text x="{across + 24:.0f}" y="{y}">{name}</text>')
        across += length
    return "".join(parts), line + 1 if names else 0
