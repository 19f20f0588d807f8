"""A run -> plotly figures. The same figures are drawn live, from the history, and in an exported page.

Figures are plain dictionaries (`data` and `layout`, as plotly.js reads them): twice a second beside two engines,
the checks of plotly's Python classes would cost more than the drawing. Exports go through those classes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from html import escape
from itertools import accumulate
from typing import Any

from .domain.metrics import acceptance_between
from .domain.records import Run, SideRecord
from .facts import facts, latest_acceptance, limitations
from .text import Locale, say, say_problem

# After Okabe and Ito's colour-blind safe palette, the blue lighter: readable on light and dark.
COLOURS = ("#2B8CC4", "#E69F00", "#009E73", "#CC79A7")
WINDOW_MS = 1000.0
POINTS = 120
# The first sample after a side's last token still tells of its last steps.
SAMPLE_LAG_MS = 1000.0

Figure = dict[str, Any]
ChartMaker = Callable[[Sequence[SideRecord], Locale], Figure]


def speed_over_time(sides: Sequence[SideRecord], locale: Locale) -> Figure:
    """Tokens in the last second before each moment, all sides on one axis."""
    figure = _figure("chart.speed", "chart.seconds", "chart.tokens_per_s", locale)
    for index, side in enumerate(sides):
        arrivals = _arrivals(side)
        times = _grid(arrivals)
        so_far = _running_total(arrivals)
        speed = [(so_far(at) - so_far(at - WINDOW_MS)) / WINDOW_MS * 1000 for at in times]
        _line(figure, side.label, index, _seconds(times), speed)
    return figure


def cumulative_tokens(sides: Sequence[SideRecord], locale: Locale) -> Figure:
    """All tokens that had arrived by each moment."""
    figure = _figure("chart.cumulative", "chart.seconds", "chart.tokens", locale)
    for index, side in enumerate(sides):
        arrivals = _arrivals(side)
        times = _grid(arrivals)
        so_far = _running_total(arrivals)
        total = [float(so_far(at)) for at in times]
        _line(figure, side.label, index, _seconds([0.0, *times]), [0.0, *total] if times else [])
    return figure


def acceptance_per_position(sides: Sequence[SideRecord], locale: Locale) -> Figure:
    """Share of drafts whose token at each position was accepted."""
    figure = _figure("chart.per_position", "chart.position", "chart.rate", locale)
    for index, side in enumerate(sides):
        acceptance = latest_acceptance(side)
        if acceptance is not None and acceptance.drafts:
            rates = list(acceptance.per_position)
            positions = list(range(1, len(rates) + 1))
            bar = {"type": "bar", "x": positions, "y": rates, "name": escape(side.label)}
            figure["data"].append({**bar, "marker": {"color": COLOURS[index]}})
    figure["layout"]["xaxis"]["dtick"] = 1
    return _as_share(figure, sides, locale)


def acceptance_over_time(sides: Sequence[SideRecord], locale: Locale) -> Figure:
    """Acceptance rate from the run's start to each sample of the engine's counters."""
    figure = _figure("chart.acceptance", "chart.seconds", "chart.rate", locale)
    for index, side in enumerate(sides):
        end = max((ms for ms, _ in _arrivals(side)), default=0.0)
        points = [
            (sample.ms / 1000, acceptance.rate)
            for sample in side.samples
            if sample.ms <= end + SAMPLE_LAG_MS
            and side.trials
            and (acceptance := acceptance_between(side.trials[0].before, sample.counters)) is not None
            and acceptance.rate is not None
        ]
        if points:
            x, y = zip(*points, strict=True)
            _line(figure, side.label, index, x, y, mode="lines+markers")
    return _as_share(figure, sides, locale)


CHARTS: dict[str, ChartMaker] = {
    "speed": speed_over_time,
    "cumulative": cumulative_tokens,
    "per_position": acceptance_per_position,
    "acceptance": acceptance_over_time,
}


def html_report(run: Run, locale: Locale = "en") -> str:
    """One self-contained page: the charts with plotly inside, each side's command and answer."""
    import plotly.graph_objects as go

    parts = [f"<h1>{escape(run.id)}</h1><p>{escape(run.created_at)} · {escape(run.status)}</p>"]
    parts += [f"<h3>{turn.role}</h3><pre>{escape(turn.content)}</pre>" for turn in run.workload.conversation]
    for side in run.sides:
        answers = "\n\n".join(trace.output_text for trace in side.requests)
        parts.append(f"<h2>{escape(side.label)}</h2><p><code>{escape(side.command)}</code></p>")
        parts.append(f"<pre>{escape(answers)}</pre><table>")
        for name, text, definition in facts(side, locale):
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in (name, text, definition))
            parts.append(f"<tr>{cells}</tr>")
        parts.append("</table>")
        parts += [
            f"<p>{escape(say_problem(known, locale))}</p>" for known in limitations(side, run.workload.sampling)
        ]
    for number, make in enumerate(CHARTS.values()):
        figure = go.Figure(make(run.sides, locale))
        parts.append(figure.to_html(full_html=False, include_plotlyjs=number == 0))
    style = "body{font-family:sans-serif;max-width:60rem;margin:2rem auto}pre{white-space:pre-wrap}"
    head = f"<meta charset='utf-8'><title>{escape(run.id)}</title><style>{style}</style>"
    return f"<!doctype html><html lang='{locale}'><head>{head}</head><body>{''.join(parts)}</body></html>"


def _figure(title: str, x: str, y: str, locale: Locale) -> Figure:
    axis = {"rangemode": "tozero", "gridcolor": "rgba(128,128,128,.25)", "zeroline": False}
    layout = {
        "title": {"text": say(title, locale), "font": {"size": 14}, "x": 0.01},
        "xaxis": {**axis, "title": {"text": say(x, locale)}},
        "yaxis": {**axis, "title": {"text": say(y, locale)}},
        # Kept while data change: what the reader zoomed into stays.
        "uirevision": "same",
        "margin": {"l": 56, "r": 10, "t": 56, "b": 44},
        "height": 270,
        "font": {"family": "system-ui, sans-serif"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        "showlegend": True,
    }
    return {"data": [], "layout": layout}


def _line(
    figure: Figure, label: str, index: int, x: Sequence[float], y: Sequence[float], mode: str = "lines"
) -> None:
    line = {"color": COLOURS[index]}
    figure["data"].append(
        {"type": "scatter", "mode": mode, "x": list(x), "y": list(y), "name": escape(label), "line": line}
    )


def _as_share(figure: Figure, sides: Sequence[SideRecord], locale: Locale) -> Figure:
    figure["layout"]["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    if not figure["data"]:
        known = [side.settings.speculates for side in sides]
        why = "waiting" if any(known) else "unknown_speculation" if None in known else "no_speculation"
        text = say(f"chart.{why}", locale)
        place = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        figure["layout"]["annotations"] = [{"text": text, "showarrow": False, **place}]
    return figure


def _seconds(times_ms: Sequence[float]) -> list[float]:
    return [round(at / 1000, 3) for at in times_ms]


def _arrivals(side: SideRecord) -> list[tuple[float, int]]:
    """(milliseconds since the run's first send, tokens) of every counted chunk, in time order."""
    return sorted(
        (trial.started_ms + trace.sent_ms + chunk.ms, chunk.tokens)
        for trial in side.trials
        for trace in trial.requests
        for chunk in trace.chunks
        if chunk.tokens
    )


def _running_total(arrivals: Sequence[tuple[float, int]]) -> Callable[[float], int]:
    """How many tokens had arrived by a moment."""
    times = [ms for ms, _ in arrivals]
    totals = [0, *accumulate(count for _, count in arrivals)]
    return lambda at: totals[bisect_right(times, at)]


def _grid(arrivals: Sequence[tuple[float, int]]) -> list[float]:
    """At most POINTS moments from the first to the last arrival."""
    if not arrivals:
        return []
    first, last = arrivals[0][0], arrivals[-1][0]
    if last <= first:
        return [first]
    step = (last - first) / (POINTS - 1)
    return [first + step * i for i in range(POINTS)]
