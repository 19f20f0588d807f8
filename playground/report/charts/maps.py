"""A sweep over two knobs: a map a side, of its figure and of its speed-up with the line where that is 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from playground.domain.stats.verdicts import LOWER_IS_BETTER
from playground.domain.sweep.analysis import PointResult
from playground.report.figures import number

from .figure import Chart, noted
from .knob_axis import KnobAxis
from .swept import SweepContext

# Slower and faster, after the palette of the sides.
DIVERGING = [[0, "#E69F00"], [0.5, "#f2f2f2"], [1, "#2B8CC4"]]
# Told from both, and from a light and a dark page.
BREAK_EVEN = "#d6336c"
# A point's value for the map's colour, and what its cell says.
Cell = Callable[[PointResult], tuple[float | None, str]]
# A cell in its place: column, row, the point, its value, its words.
Placed = tuple[int, int, PointResult, float | None, str]
# More leave no room for words.
MOST_COLUMNS = 12


def maps(swept: SweepContext) -> dict[str, Chart]:
    """Speed-ups first: where they cross 1 is what a map is for."""
    baseline, *others = swept.labels
    made: dict[str, Chart] = {}
    for index, label in enumerate(others, start=1):
        names = {"side": label, "baseline": baseline}
        made[f"speed_up_{index}"] = _ratios(swept, swept.text("speed_up_of", **names), _measured(label))
        if any(one == label for _, one in swept.predicted):
            title = swept.text("predicted_of", **names)
            made[f"predicted_{index}"] = _ratios(swept, title, _predicted(swept, label), measured=False)
    objective = swept.sweep.case.workload.objective
    for index, label in enumerate(swept.labels):
        title = f"{swept.text(f'by_{objective}')} · {escape(label)}"
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


def _predicted(swept: SweepContext, label: str) -> Cell:
    """A range has no likeliest value: its ends stand there, without a colour."""

    def cell(point: PointResult) -> tuple[float | None, str]:
        found = swept.predicted.get((point.number, label))
        if found is None:
            return None, ""
        if found.speed_up is None and found.interval is not None:
            return None, f"{found.interval[0]:.2f}–{found.interval[1]:.2f}x"
        return found.speed_up, f"{found.speed_up:.2f}x"

    return cell


def _ratios(swept: SweepContext, title: str, cell: Cell, *, measured: bool = True) -> Chart:
    figure = _map(swept, title, cell, {"colorscale": DIVERGING, "zmid": 1}, measured=measured)
    heat = next((trace for trace in figure["data"] if trace["type"] == "heatmap"), None)
    if heat is not None:
        level = {"start": 1, "end": 1, "size": 1, "coloring": "none"}
        line = {
            "type": "contour",
            "contours": level,
            "line": {"color": BREAK_EVEN, "width": 3},
            "hoverinfo": "skip",
        }
        name = {"name": swept.text("break_even"), "showlegend": True, "showscale": False}
        figure["data"].insert(1, {**line, **name, "x": heat["x"], "y": heat["y"], "z": heat["z"]})
    return figure


def _map(swept: SweepContext, title: str, cell: Cell, colours: dict[str, Any], *, measured: bool = True) -> Chart:
    """Cells of equal size, the first knob to the right, the second upwards. Only what was `measured` failed."""
    x, y = (KnobAxis(knob, even=True) for knob in swept.sweep.plan.knobs)
    figure = swept.figure(title, "", "")
    figure["layout"]["xaxis"] |= x.layout()
    figure["layout"]["yaxis"] |= y.layout()
    cells = [(int(x.at(p.values[0])), int(y.at(p.values[1])), p, *cell(p)) for p in swept.points]
    if any(value is not None for *_, value, _ in cells):
        figure["data"].append(_heat(swept, len(x.knob.values), len(y.knob.values), cells) | colours)
    if words := [one for one in cells if one[3] is None and one[4]]:
        figure["data"].append(_words(words))
    failed = [one for one in cells if measured and one[2].problem is not None]
    if failed:
        places = [float(one[0]) for one in failed], [float(one[1]) for one in failed]
        figure["data"].append(swept.crosses([one[2] for one in failed], *places))
    return noted(figure, "curve.nothing", swept.locale)


def _heat(swept: SweepContext, columns: int, rows: int, cells: Sequence[Placed]) -> dict[str, Any]:
    def grid(of: Callable[[Placed], object], empty: object) -> list[list[object]]:
        made = [[empty] * columns for _ in range(rows)]
        for one in cells:
            made[one[1]][one[0]] = of(one)
        return made

    crowded = columns > MOST_COLUMNS
    return {
        "type": "heatmap",
        "x": list(range(columns)),
        "y": list(range(rows)),
        "z": grid(lambda one: one[3], None),
        "text": grid(lambda one: one[4], ""),
        "texttemplate": "" if crowded else "%{text}",
        "showscale": crowded,
        "hovertext": grid(lambda one: f"{swept.told(one[2])}<br>{one[4]}", ""),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": grid(lambda one: one[2].run_id, None),
        "xgap": 1,
        "ygap": 1,
    }


def _words(cells: Sequence[Placed]) -> dict[str, Any]:
    """What has no single value, and so no colour."""
    return {
        "type": "scatter",
        "mode": "text",
        "x": [one[0] for one in cells],
        "y": [one[1] for one in cells],
        "text": [one[4] for one in cells],
        "customdata": [one[2].run_id for one in cells],
        "hoverinfo": "skip",
        "showlegend": False,
    }
