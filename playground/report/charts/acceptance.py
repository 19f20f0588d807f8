"""The acceptance rate at which speculation pays, beside the measured one."""

from __future__ import annotations

from collections.abc import Sequence

from playground.domain.speculation.theory import SpeculationPoint, break_even_acceptance, step_cost
from playground.domain.sweep.plan import value_text
from playground.domain.sweep.series import SpeculationSeries
from playground.i18n import say

from .chart import COLOURS, Chart, as_share, line, with_long_legend
from .knob_axis import KnobAxis
from .sweep_context import SweepContext

SYMBOLS = ("circle", "square", "diamond", "cross")
# A place on the axis, the point's number, what the point measured.
Placed = tuple[float, int, SpeculationPoint]


def acceptance_needed(context: SweepContext) -> dict[str, Chart]:
    """Against k where it is varied, one pair of lines for each value of the other knob; else against the knob.

    Both are constant acceptance rates over all positions: the one that gives as many tokens per step as were
    measured, and the one that gives as many as a step costs.
    """
    knobs = context.sweep.plan.knobs
    axis = KnobAxis(knobs[0])
    by_k: list[tuple[str, list[Placed]]] = []
    by_knob: dict[str, list[Placed]] = {}
    for series in context.analysis.series:
        if series.k_index is not None:
            placed = [(float(point.k), number, point) for number, point in series.points.items()]
            by_k.append((_name(context, series), placed))
        elif len(knobs) == 1:
            placed = [(axis.at(series.others[0]), number, point) for number, point in series.points.items()]
            by_knob.setdefault(series.label, []).extend(placed)
    if by_k:
        figure = context.figure(
            context.text("acceptance"), context.text("k"), say("chart.equal_rate", context.locale)
        )
        figure["layout"]["xaxis"]["rangemode"] = "normal"
        return {"acceptance": _drawn(context, figure, by_k)}
    if by_knob:
        figure = context.against(axis, context.text("acceptance"), "chart.equal_rate")
        return {"acceptance": _drawn(context, figure, list(by_knob.items()))}
    return {}


def _name(context: SweepContext, series: SpeculationSeries) -> str:
    """The side, and the values of the knobs beside its k."""
    others = [knob for index, knob in enumerate(context.sweep.plan.knobs) if index != series.k_index]
    pairs = zip(others, series.others, strict=True)
    return ", ".join([series.label, *(f"{knob.key} = {value_text(value)}" for knob, value in pairs)])


def _drawn(context: SweepContext, figure: Chart, groups: Sequence[tuple[str, list[Placed]]]) -> Chart:
    for index, (name, placed) in enumerate(groups, start=1):
        ascending = sorted(placed, key=lambda item: item[0])
        points = [point for _, _, point in ascending]
        reached = [break_even_acceptance(point.k, 1 + sum(point.acceptance)) for point in points]
        needed = [break_even_acceptance(point.k, step_cost(point)) for point in points]
        colour, symbol = index % len(COLOURS), SYMBOLS[index // len(COLOURS) % len(SYMBOLS)]
        for values, kind, dash in ((reached, "reached", "solid"), (needed, "needed", "dash")):
            line(figure, "", colour, [x for x, _, _ in ascending], values, mode="lines+markers", dash=dash)
            figure["data"][-1] |= {
                "name": context.text(kind, side=name),
                "marker": {"color": COLOURS[colour], "symbol": symbol},
                "customdata": [context.run_id(number) for _, number, _ in ascending],
            }
    return as_share(with_long_legend(figure, len(groups)))
