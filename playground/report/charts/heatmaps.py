"""A sweep over two knobs: a map a side, of its figure and of its speed-up with the line where that is 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from playground.domain.stats.verdicts import LOWER_IS_BETTER
from playground.domain.sweep.result import PointResult
from playground.report.figures import number

from .chart import Chart, noted
from .knob_axis import KnobAxis
from .sweep_context import SweepContext

# Slower and faster, in colours of the sides' palette.
DIVERGING = [[0, "#E69F00"], [0.5, "#f2f2f2"], [1, "#2B8CC4"]]
# Distinct from both, and from a light and a dark page.
BREAK_EVEN = "#d6336c"
# A point's value for the map's colour, and the text in its cell.
Read = Callable[[PointResult], tuple[float | None, str]]
# With more cells there is no room for text.
MOST_COLUMNS = 12


class Cell(NamedTuple):
    """A point in its place, with its value for the map's colour and its text."""

    column: int
    row: int
    point: PointResult
    value: float | None
    text: str


def maps(context: SweepContext) -> dict[str, Chart]:
    """Speed-ups first: the line where they cross 1 matters most on a map."""
    baseline, *others = context.labels
    charts: dict[str, Chart] = {}
    for index, label in enumerate(others, start=1):
        names = {"side": label, "baseline": baseline}
        charts[f"speed_up_{index}"] = _ratios(context, context.text("speed_up_of", **names), _measured(label))
        if any(side == label for _, side in context.analysis.predictions):
            title, read = context.text("predicted_of", **names), _predicted(context, label)
            charts[f"predicted_{index}"] = _ratios(context, title, read, measured=False)
    for index, label in enumerate(context.labels):
        title = f"{context.text(f'by_{context.objective}')} · {escape(label)}"
        colours = {"colorscale": "Viridis", "reversescale": context.objective in LOWER_IS_BETTER}
        charts[f"objective_{index}"] = _map(context, title, _objective(label), colours)
    return charts


def _objective(label: str) -> Read:
    def read(point: PointResult) -> tuple[float | None, str]:
        side = point.side(label)
        value = side.objective.value if side is not None else None
        return value, "" if value is None else number(value)

    return read


def _measured(label: str) -> Read:
    def read(point: PointResult) -> tuple[float | None, str]:
        side = point.side(label)
        speed_up = side.verdict.speed_up if side is not None and side.verdict is not None else None
        return speed_up, "" if speed_up is None else f"{speed_up:.2f}x"

    return read


def _predicted(context: SweepContext, label: str) -> Read:
    """A predicted range has no likeliest value: its cell shows the ends, without a colour."""

    def read(point: PointResult) -> tuple[float | None, str]:
        prediction = context.analysis.predictions.get((point.number, label))
        if prediction is None:
            return None, ""
        if prediction.speed_up is None and prediction.interval is not None:
            return None, f"{prediction.interval[0]:.2f}–{prediction.interval[1]:.2f}x"
        return prediction.speed_up, f"{prediction.speed_up:.2f}x"

    return read


def _ratios(context: SweepContext, title: str, read: Read, *, measured: bool = True) -> Chart:
    figure = _map(context, title, read, {"colorscale": DIVERGING, "zmid": 1}, measured=measured)
    heat = next((trace for trace in figure["data"] if trace["type"] == "heatmap"), None)
    if heat is not None:
        level = {"start": 1, "end": 1, "size": 1, "coloring": "none"}
        line = {
            "type": "contour",
            "contours": level,
            "line": {"color": BREAK_EVEN, "width": 3},
            "hoverinfo": "skip",
        }
        name = {"name": context.text("break_even"), "showlegend": True, "showscale": False}
        figure["data"].insert(1, {**line, **name, "x": heat["x"], "y": heat["y"], "z": heat["z"]})
    return figure


def _map(
    context: SweepContext, title: str, read: Read, colours: dict[str, Any], *, measured: bool = True
) -> Chart:
    """Cells of equal size, the first knob to the right, the second upwards. Failed points are marked only on maps
    of what was `measured`."""
    x, y = (KnobAxis(knob, even=True) for knob in context.sweep.plan.knobs)
    figure = context.figure(title, "", "")
    figure["layout"]["xaxis"] |= x.layout()
    figure["layout"]["yaxis"] |= y.layout()
    cells = [
        Cell(int(x.at(point.values[0])), int(y.at(point.values[1])), point, *read(point))
        for point in context.analysis.points
    ]
    if any(cell.value is not None for cell in cells):
        figure["data"].append(_heat(context, len(x.knob.values), len(y.knob.values), cells) | colours)
    if texts := [cell for cell in cells if cell.value is None and cell.text]:
        figure["data"].append(_texts(texts))
    if failed := [cell for cell in cells if measured and cell.point.problem is not None]:
        places = [float(cell.column) for cell in failed], [float(cell.row) for cell in failed]
        figure["data"].append(context.crosses([cell.point for cell in failed], *places))
    return noted(figure, "curve.nothing", context.locale)


def _heat(context: SweepContext, columns: int, rows: int, cells: Sequence[Cell]) -> dict[str, Any]:
    def grid(of: Callable[[Cell], object], empty: object) -> list[list[object]]:
        filled = [[empty] * columns for _ in range(rows)]
        for cell in cells:
            filled[cell.row][cell.column] = of(cell)
        return filled

    crowded = columns > MOST_COLUMNS
    return {
        "type": "heatmap",
        "x": list(range(columns)),
        "y": list(range(rows)),
        "z": grid(lambda cell: cell.value, None),
        "text": grid(lambda cell: cell.text, ""),
        "texttemplate": "" if crowded else "%{text}",
        "showscale": crowded,
        "hovertext": grid(lambda cell: f"{context.described(cell.point)}<br>{cell.text}", ""),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": grid(lambda cell: cell.point.run_id, None),
        "xgap": 1,
        "ygap": 1,
    }


def _texts(cells: Sequence[Cell]) -> dict[str, Any]:
    """The texts of cells that have no single value, and so no colour."""
    return {
        "type": "scatter",
        "mode": "text",
        "x": [cell.column for cell in cells],
        "y": [cell.row for cell in cells],
        "text": [cell.text for cell in cells],
        "customdata": [cell.point.run_id for cell in cells],
        "hoverinfo": "skip",
        "showlegend": False,
    }
