"""A sweep -> plotly figures. Every trace carries its points' run ids as `customdata`: a click opens the run."""

from __future__ import annotations

from playground.domain.sweep.analysis import SweepAnalysis
from playground.i18n import Locale

from .acceptance import acceptance_needed
from .better_draft import better_drafts
from .chart import Chart
from .curves import curves
from .heatmaps import maps
from .pareto import trade_offs
from .sweep_context import SweepContext


def sweep_charts(analysis: SweepAnalysis, locale: Locale) -> dict[str, Chart]:
    """All charts of a sweep by name, in reading order; none if it has ended without a measured point."""
    context = SweepContext(analysis, locale)
    if analysis.sweep.status != "running" and not any(point.sides for point in analysis.points):
        # Axes and the marks of failed points say no more than the table.
        return {}
    # A search may vary more knobs than a map has sides.
    by_knobs = {1: curves, 2: maps}.get(len(analysis.sweep.plan.knobs), lambda _: {})(context)
    return {**by_knobs, **trade_offs(context), **acceptance_needed(context), **better_drafts(context)}
