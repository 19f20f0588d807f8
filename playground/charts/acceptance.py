"""Which share of the draft tokens must be accepted for a k to pay, beside the share that was."""

from __future__ import annotations

from html import escape

from ..domain.speculation import break_even_acceptance, step_cost
from ..domain.sweep_results import speculation_points
from ..text import say
from .figure import COLOURS, Figure, as_share, line
from .swept import Swept


def acceptance_needed(swept: Swept) -> dict[str, Figure]:
    """One pair of lines for each side and value of the other knob. Both are rates alike at all positions: that
    with which a step gives as many tokens as it did, and that with which it would give as many as it costs."""
    groups = speculation_points(swept.sweep)
    if not groups:
        return {}
    figure = swept.figure(swept.say("acceptance"), swept.say("k"), say("chart.rate", swept.locale))
    figure["layout"]["xaxis"]["rangemode"] = "normal"
    runs = {point.number: point.run_id for point in swept.points}
    for index, ((label, others), found) in enumerate(groups.items(), start=1):
        found = sorted(found, key=lambda item: item[1].k)
        name = escape(", ".join([label, *(str(value) for value in others)]))
        ks = [float(point.k) for _, point in found]
        reached = [break_even_acceptance(point.k, 1 + sum(point.acceptance)) for _, point in found]
        needed = [break_even_acceptance(point.k, step_cost(point)) for _, point in found]
        colour = index % len(COLOURS)
        for values, kind, dash in ((reached, "reached", "solid"), (needed, "needed", "dash")):
            line(figure, "", colour, ks, values, mode="lines+markers", dash=dash)
            figure["data"][-1] |= {"name": swept.say(kind, side=name), "marker": {"color": COLOURS[colour]}}
            figure["data"][-1]["customdata"] = [runs[number] for number, _ in found]
    return {"acceptance": as_share(figure)}
