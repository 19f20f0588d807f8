"""A sweep -> plotly figures. Every trace carries its points' run ids as `customdata`: a click opens the run."""

from __future__ import annotations

from playground.domain.sweep.record import Sweep
from playground.i18n import Locale

from .acceptance import acceptance_needed
from .better_draft import better_drafts
from .curves import curves
from .figure import Chart
from .maps import maps
from .swept import SweepContext
from .trade_off import trade_offs


def sweep_charts(sweep: Sweep, locale: Locale) -> dict[str, Chart]:
    """All charts of a sweep by name, in reading order; none, if it has ended without one measured point.

    Reads every chunk of points that were not read before.
    """
    swept = SweepContext(sweep, locale)
    if sweep.status != "running" and not any(swept.of(label) for label in swept.labels):
        # Axes and the marks of what failed say nothing that the table does not.
        return {}
    # A search may turn more knobs than a map has sides.
    own = {1: curves, 2: maps}.get(len(sweep.plan.knobs), lambda _: {})(swept)
    return {**own, **trade_offs(swept), **acceptance_needed(swept), **better_drafts(swept)}
