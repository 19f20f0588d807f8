"""What all charts share: plain dictionaries (`data` and `layout`) as plotly.js reads them.

Twice a second beside two engines, the checks of plotly's Python classes would cost more than the drawing. Exports
go through those classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from playground.domain.record.metrics import Acceptance
from playground.domain.record.run import SideRecord
from playground.i18n import Locale, say

# After Okabe and Ito's colour-blind safe palette, with a lighter blue: readable on light and dark.
COLOURS = ("#2B8CC4", "#E69F00", "#009E73", "#CC79A7")

LEGEND_LINE_PX = 20

Chart = dict[str, Any]


def empty(title: str, x: str, y: str, locale: Locale) -> Chart:
    """A figure without data; `title`, `x` and `y` are message ids."""
    return titled(say(title, locale), say(x, locale), say(y, locale))


def titled(title: str, x: str, y: str) -> Chart:
    """A figure without data; the texts may hold plotly's markup."""
    axis = {"rangemode": "tozero", "gridcolor": "rgba(128,128,128,.25)", "zeroline": False}
    layout = {
        "title": {"text": title, "font": {"size": 14}, "x": 0.01},
        "xaxis": {**axis, "title": {"text": x, "standoff": 4}},
        "yaxis": {**axis, "title": {"text": y}},
        # Kept while data change: what the reader zoomed into stays.
        "uirevision": "same",
        "margin": {"l": 56, "r": 10, "t": 36, "b": 44},
        "height": 290,
        "font": {"family": "system-ui, sans-serif"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        # The legend is below the axis' title, so that they do not overlap, however many lines it has.
        "legend": {"orientation": "h", "y": -0.26, "yanchor": "top", "x": 0, "traceorder": "normal"},
        "showlegend": True,
    }
    return {"data": [], "layout": layout}


def line(
    figure: Chart,
    label: str,
    index: int,
    x: Iterable[float],
    y: Iterable[float | None],
    mode: str = "lines",
    dash: str = "solid",
) -> None:
    """Add a line in the colour of side `index`. A None in the values interrupts it."""
    style = {"color": COLOURS[index], "dash": dash}
    figure["data"].append(
        {"type": "scatter", "mode": mode, "x": list(x), "y": list(y), "name": escape(label), "line": style}
    )


def translucent(colour: str, opacity: float) -> str:
    """A colour of COLOURS that lets through what is behind it."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:.2g})"


def as_share(figure: Chart) -> Chart:
    figure["layout"]["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    return figure


def with_equality_line(figure: Chart) -> Chart:
    """Add the line at which two sides are equally good."""
    shape = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}
    figure["layout"]["shapes"] = [{**shape, "line": {"color": "rgba(128,128,128,.9)", "width": 1}}]
    return figure


def with_long_legend(figure: Chart, lines: int) -> Chart:
    """Make room for so many legend lines below the axis; the default height would cut them off."""
    layout = figure["layout"]
    layout["height"] += LEGEND_LINE_PX * (lines - 1)
    layout["margin"] = {**layout["margin"], "b": layout["margin"]["b"] + LEGEND_LINE_PX * lines}
    return figure


def noted(figure: Chart, message_id: str, locale: Locale) -> Chart:
    """Add a note that says why the figure is empty, if it is."""
    if not figure["data"]:
        place = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        figure["layout"]["annotations"] = [{"text": say(message_id, locale), "showarrow": False, **place}]
    return figure


def per_position(accepted: Sequence[tuple[SideRecord, Acceptance | None]], locale: Locale) -> Chart:
    """Share of drafts whose token at each position was accepted."""
    figure = empty("chart.per_position", "chart.position", "chart.rate", locale)
    for index, (side, acceptance) in enumerate(accepted):
        if acceptance is not None and acceptance.drafts:
            rates = list(acceptance.per_position)
            positions = list(range(1, len(rates) + 1))
            bar = {"type": "bar", "x": positions, "y": rates, "name": escape(side.label)}
            figure["data"].append({**bar, "marker": {"color": COLOURS[index]}})
    figure["layout"]["xaxis"]["dtick"] = 1
    return no_speculation([side for side, _ in accepted], as_share(figure), locale)


def no_speculation(sides: Sequence[SideRecord], figure: Chart, locale: Locale) -> Chart:
    known = [side.settings.speculates for side in sides]
    why = "waiting" if any(known) else "unknown_speculation" if None in known else "no_speculation"
    return noted(figure, f"chart.{why}", locale)
