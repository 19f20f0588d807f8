"""The charts of a race."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from playground.domain.record.metrics import acceptance_between
from playground.domain.record.run import Run, SideRecord
from playground.i18n import Locale
from playground.report.side_summary import latest_acceptance

from .chart import Chart, as_share, empty, line, no_speculation, per_position

WINDOW_MS = 1000.0
POINTS = 120
# The first sample after a side's last token still covers its last steps.
SAMPLE_LAG_MS = 1000.0


def race_charts(run: Run, locale: Locale) -> dict[str, Chart]:
    return {
        "speed": speed_over_time(run.sides, locale),
        "cumulative": cumulative_tokens(run.sides, locale),
        "per_position": per_position([(side, latest_acceptance(side)) for side in run.sides], locale),
        "acceptance": acceptance_over_time(run.sides, locale),
    }


def speed_over_time(sides: Sequence[SideRecord], locale: Locale) -> Chart:
    """Tokens a second over the second before each moment, or since the prompt was sent; all sides on one axis."""
    figure = empty("chart.speed", "chart.seconds", "chart.tokens_per_s", locale)
    for index, side in enumerate(sides):
        arrivals = _arrivals(side)
        times = _grid(arrivals)
        so_far = _running_total(arrivals)
        speed = [(so_far(at) - so_far(at - WINDOW_MS)) / max(min(WINDOW_MS, at), 1.0) * 1000 for at in times]
        line(figure, side.label, index, _seconds(times), speed)
    return figure


def cumulative_tokens(sides: Sequence[SideRecord], locale: Locale) -> Chart:
    """All tokens that had arrived by each moment."""
    figure = empty("chart.cumulative", "chart.seconds", "chart.tokens", locale)
    for index, side in enumerate(sides):
        arrivals = _arrivals(side)
        times = _grid(arrivals)
        so_far = _running_total(arrivals)
        total = [float(so_far(at)) for at in times]
        line(figure, side.label, index, _seconds([0.0, *times] if times else []), [0.0, *total] if times else [])
    return figure


def acceptance_over_time(sides: Sequence[SideRecord], locale: Locale) -> Chart:
    """Acceptance rate from the run's start to each sample of the engine's counters."""
    figure = empty("chart.acceptance", "chart.seconds", "chart.rate", locale)
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
            line(figure, side.label, index, x, y, mode="lines+markers")
    return no_speculation(sides, as_share(figure), locale)


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
