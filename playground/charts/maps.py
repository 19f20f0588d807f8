"""A sweep over two knobs: a map a side, of its figure and of its speed-up with the line where that is 1."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from ..domain.statistics import LOWER_IS_BETTER
from ..domain.sweep_results import PointResult
from ..facts import number
from .figure import Figure, noted
from .knob_axis import KnobAxis
from .swept import Swept

# Slower and faster, after the palette of the sides.
DIVERGING = [[0, "#E69F00"], [0.5, "#f2f2f2"], [1, "#2B8CC4"]]
# A point's value for the map's colour, and what its cell says.
Cell = Callable[[PointResult], tuple[float | None, str]]


def maps(swept: Swept) -> dict[str, Figure]:
    """Speed-ups first: where they cross 1 is what a map is for."""
    baseline, *others = swept.labels
    made: dict[str, Figure] = {}
    for index, label in enumerate(others, start=1):
        names = {"side": label, "baseline": baseline}
        made[f"speed_up_{index}"] = _ratios(swept, swept.say("speed_up_of", **names), _measured(label))
        if any(one == label for _, one in swept.predicted):
            title = swept.say("predicted_of", **names)
            made[f"predicted_{index}"] = _ratios(swept, title, _predicted(swept, label))
    objective = swept.sweep.case.workload.objective
    for index, label in enumerate(swept.labels):
        title = f"{swept.say(f'by_{objective}')} · {escape(label)}"
        colours = {"colorscale": "Viridis", "reversescale": objective in LOWER_IS_BETTER}
        made[f"objective_{index}"] = _map(swept, title, _objective(label), colours)
    return made


def _objective(label: str) -> Cell:
    def cell(point: PointResult) -> tuple[float | None, str]:
        side = point.of(label)
        return (None, "") if side is None or side.value is None else (side.value, number(side.value))

    return cell


def _measured(label: str) -> Cell:
    def cell(point: PointResult) -> tuple[float | None, str]:
        side = point.of(label)
        known = side.verdict.speed_up if side is not None and side.verdict is not None else None
        return known, "" if known is None else f"{known:.2f}x"

    return cell


def _predicted(swept: Swept, label: str) -> Cell:
    """A range has no likeliest value: its ends stand there, without a colour."""

    def cell(point: PointResult) -> tuple[float | None, str]:
        found = swept.predicted.get((point.number, label))
        if found is None:
            return None, ""
        if found.speed_up is None and found.interval is not None:
            return None, f"{found.interval[0]:.2f}–{found.interval[1]:.2f}x"
        return found.speed_up, f"{found.speed_up:.2f}x"

    return cell


def _ratios(swept: Swept, title: str, cell: Cell) -> Figure:
    figure = _map(swept, title, cell, {"colorscale": DIVERGING, "zmid": 1})
    if figure["data"] and figure["data"][0]["type"] == "heatmap":
        heat = figure["data"][0]
        level = {"start": 1, "end": 1, "size": 1, "coloring": "none"}
        line = {"type": "contour", "contours": level, "line": {"color": "#222", "width": 3}, "hoverinfo": "skip"}
        name = {"name": swept.say("break_even"), "showlegend": True, "showscale": False}
        figure["data"].insert(1, {**line, **name, "x": heat["x"], "y": heat["y"], "z": heat["z"]})
    return figure


def _map(swept: Swept, title: str, cell: Cell, colours: dict[str, Any]) -> Figure:
    """Cells of equal size, the first knob to the right, the second upwards."""
    x, y = (KnobAxis(knob, even=True) for knob in swept.sweep.plan.knobs)
    figure = swept.figure(title, "", "")
    figure["layout"]["xaxis"] |= x.layout()
    figure["layout"]["yaxis"] |= y.layout()
    rows = [[None] * len(x.knob.values) for _ in y.knob.values]
    z: list[list[Any]] = [list(row) for row in rows]
    texts: list[list[Any]] = [[""] * len(row) for row in rows]
    hover: list[list[Any]] = [[""] * len(row) for row in rows]
    runs: list[list[Any]] = [list(row) for row in rows]
    for point in swept.points:
        column, row = int(x.at(point.values[0])), int(y.at(point.values[1]))
        z[row][column], texts[row][column] = cell(point)
        hover[row][column] = f"{swept.told(point)}<br>{texts[row][column]}"
        runs[row][column] = point.run_id
    if any(text for row in texts for text in row):
        heat = {"type": "heatmap", "x": list(range(len(x.knob.values))), "y": list(range(len(y.knob.values)))}
        heat |= {"z": z, "text": texts, "texttemplate": "%{text}", "hovertext": hover, "customdata": runs}
        shown = {"hovertemplate": "%{hovertext}<extra></extra>", "xgap": 1, "ygap": 1, "showscale": False}
        figure["data"].append({**heat, **shown, **colours})
    failed = [point for point in swept.points if point.problem is not None]
    if failed:
        places = [(x.at(point.values[0]), y.at(point.values[1])) for point in failed]
        figure["data"].append(swept.crosses(failed, [at for at, _ in places], [at for _, at in places]))
    return noted(figure, "curve.nothing", swept.locale)
