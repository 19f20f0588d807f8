"""What a chart grid shows (assets/charts.js)."""

from __future__ import annotations

import json

from playground.i18n import Locale, say
from playground.report import charts


def charts_value(figures: dict[str, charts.Chart], locale: Locale, *, ended: bool, lead: str | None = None) -> str:
    """The value of a chart grid. `lead`: the chart that is drawn at once. What says nothing is left out once the
    run has `ended`; before that, it may still come to say something."""
    said, silent = charts.informative(figures)
    shown = said if ended else figures
    if not shown:
        return "{}"
    names = {"title": "chart.all", **{form: f"chart.save_{form}" for form in ("png", "svg")}}
    texts = {name: say(message_id, locale, count=len(shown)) for name, message_id in names.items()}
    if ended and silent:
        texts["left_out"] = say("chart.left_out", locale, titles=" · ".join(silent))
    first = charts.svg(shown[lead]) if lead in shown else ""
    return json.dumps({"lead": first, "figures": shown, **texts})
