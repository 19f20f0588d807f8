"""Which share of the draft tokens must be accepted for speculation to pay, beside the share that was."""

from __future__ import annotations

from collections.abc import Sequence

from playground.domain.speculation.theory import SpeculationPoint, break_even_acceptance, step_cost
from playground.domain.sweep.analysis import k_index, speculation_points
from playground.domain.sweep.plan import value_text
from playground.i18n import say

from .figure import COLOURS, Chart, as_share, line, with_long_legend
from .knob_axis import KnobAxis
from .swept import SweepContext

SYMBOLS = ("circle", "square", "diamond", "cross")
# Where it lies, the point's number, what it measured.
Placed = tuple[float, int, SpeculationPoint]


def acceptance_needed(swept: SweepContext) -> dict[str, Chart]:
    """Against k where it is varied, one pair of lines for each value of the other knob; else against the knob.

    Both are rates alike at all positions: that with which a step gives as many tokens as it did, and that with
    which it would give as many as it costs.
    """
    axis, knobs = KnobAxis(swept.sweep.plan.knobs[0]), swept.sweep.plan.knobs
    by_k: list[tuple[str, list[Placed]]] = []
    by_knob: dict[str, list[Placed]] = {}
    for (label, others), found in speculation_points(swept.sweep).items():
        if (index := k_index(swept.sweep, label)) is not None:
            named = zip([knob for at, knob in enumerate(knobs) if at != index], others, strict=True)
            name = ", ".join([label, *(f"{knob.key} = {value_text(value)}" for knob, value in named)])
            by_k.append((name, [(float(point.k), number, point) for number, point in found]))
        elif len(knobs) == 1:
            by_knob.setdefault(label, []).extend((axis.at(others[0]), *one) for one in found)
    if by_k:
        figure = swept.figure(swept.text("acceptance"), swept.text("k"), say("chart.rate", swept.locale))
        figure["layout"]["xaxis"]["rangemode"] = "normal"
        return {"acceptance": _drawn(swept, figure, by_k)}
    if by_knob:
        figure = swept.against(axis, swept.text("acceptance"), "chart.rate")
        return {"acceptance": _drawn(swept, figure, list(by_knob.items()))}
    return {}


def _drawn(swept: SweepContext, figure: Chart, groups: Sequence[tuple[str, list[Placed]]]) -> Chart:
    runs = {point.number: point.run_id for point in swept.points}
    for index, (name, placed) in enumerate(groups, start=1):
        found = sorted(placed, key=lambda one: one[0])
        reached = [break_even_acceptance(point.k, 1 + sum(point.acceptance)) for _, _, point in found]
        needed = [break_even_acceptance(point.k, step_cost(point)) for _, _, point in found]
        colour, symbol = index % len(COLOURS), SYMBOLS[index // len(COLOURS) % len(SYMBOLS)]
        for values, kind, dash in ((reached, "reached", "solid"), (needed, "needed", "dash")):
            line(figure, "", colour, [x for x, _, _ in found], values, mode="lines+markers", dash=dash)
            figure["data"][-1] |= {
                "name": swept.text(kind, side=name),
                "marker": {"color": COLOURS[colour], "symbol": symbol},
                "customdata": [runs[number] for _, number, _ in found],
            }
    return as_share(with_long_legend(figure, len(groups)))
