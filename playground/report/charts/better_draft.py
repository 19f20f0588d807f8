"""What a draft of the same cost would gain if more of its tokens were accepted: predicted, and measured."""

from __future__ import annotations

from html import escape

from playground.domain.speculation.theory import better_draft, break_even_acceptance, known_cost
from playground.i18n import say

from .chart import COLOURS, Chart, line, with_equality_line, with_long_legend
from .sweep_context import SweepContext

RATES = [step / 20 for step in range(21)]


def better_drafts(context: SweepContext) -> dict[str, Chart]:
    """The predicted speed-up at every acceptance rate for each side's fastest measured k, with unchanged draft
    cost; the mark is the measurement."""
    groups, locale = context.analysis.series, context.locale
    if not groups or context.sweep.synthetic:
        return {}
    figure = context.figure(
        say("better.title", locale), say("chart.equal_rate", locale), say("chart.ratio", locale)
    )
    figure["layout"]["xaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    for index, series in enumerate(groups, start=1):
        number, best = max(series.points.items(), key=lambda item: item[1].speed_up)
        if (cost := known_cost(best)) is None:
            continue
        name = escape(", ".join([series.label, *(str(value) for value in series.others), f"k = {best.k}"]))
        colour = index % len(COLOURS)
        line(figure, "", colour, RATES, better_draft(cost, best.k, RATES, best.coverage), dash="dash")
        figure["data"][-1]["name"] = say("better.predicted", locale, side=name)
        reached = break_even_acceptance(best.k, 1 + sum(best.acceptance))
        line(figure, "", colour, [reached] if reached is not None else [], [best.speed_up], mode="markers")
        figure["data"][-1] |= {
            "name": say("better.measured", locale, side=name),
            "customdata": [context.run_id(number)],
            "marker": {"color": COLOURS[colour], "size": 10},
        }
    return {"better_draft": with_equality_line(with_long_legend(figure, len(groups)))} if figure["data"] else {}
