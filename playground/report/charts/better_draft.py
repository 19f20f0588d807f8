"""What a draft of the same cost would bring if more of its tokens were accepted: predicted, and measured."""

from __future__ import annotations

from html import escape

from playground.domain.speculation.theory import better_draft, break_even_acceptance, known_cost
from playground.domain.sweep.analysis import speculation_points, synthetic
from playground.i18n import say

from .figure import COLOURS, Chart, line, with_long_legend, with_one
from .swept import SweepContext

RATES = [step / 20 for step in range(21)]


def better_drafts(swept: SweepContext) -> dict[str, Chart]:
    """For each side's fastest measured k the speed-up that the theory gives for every acceptance rate, drafts
    costing what they did; the mark is what was measured."""
    groups = speculation_points(swept.sweep)
    if not groups or synthetic(swept.sweep):
        return {}
    locale = swept.locale
    figure = swept.figure(say("better.title", locale), say("chart.rate", locale), say("chart.ratio", locale))
    figure["layout"]["xaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    runs = {point.number: point.run_id for point in swept.points}
    for index, ((label, others), found) in enumerate(groups.items(), start=1):
        number, best = max(found, key=lambda item: item[1].speed_up)
        if (cost := known_cost(best)) is None:
            continue
        name = escape(", ".join([label, *(str(value) for value in others), f"k = {best.k}"]))
        colour = index % len(COLOURS)
        line(figure, "", colour, RATES, better_draft(cost, best.k, RATES, best.coverage), dash="dash")
        figure["data"][-1]["name"] = say("better.predicted", locale, side=name)
        reached = break_even_acceptance(best.k, 1 + sum(best.acceptance))
        line(figure, "", colour, [reached] if reached is not None else [], [best.speed_up], mode="markers")
        figure["data"][-1] |= {"name": say("better.measured", locale, side=name), "customdata": [runs[number]]}
        figure["data"][-1]["marker"] = {"color": COLOURS[colour], "size": 10}
    return {"better_draft": with_one(with_long_legend(figure, len(groups)))} if figure["data"] else {}
