"""The trend of the preset that the history is filtered by, as HTML: one chart, one sentence."""

from __future__ import annotations

from html import escape

from playground.domain.errors import InvalidInput
from playground.i18n import Locale
from playground.report.charts import svg
from playground.report.trend.chart import trend_chart, trend_text
from playground.report.trend.trend import Trend
from playground.runs.host import Host

# A single run has no trend.
LEAST = 2


def trend_html(host: Host, preset: str, locale: Locale) -> str:
    """Empty without runs to draw. Blocking."""
    try:
        trend = Trend.of(host.history, preset)
    except InvalidInput as error:
        if error.message_id != "trend.none":
            raise
        return ""
    if len(trend.points) < LEAST:
        return ""
    return f"<p><strong>{escape(trend_text(trend, locale))}</strong></p>{svg(trend_chart(trend, locale))}"
