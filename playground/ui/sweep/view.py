"""The components that show a sweep, on its own tab and in the history. A click on a point opens its run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale
from playground.logs import refused
from playground.runs.host import Host
from playground.store import READERS, readable
from playground.ui.shared import view
from playground.ui.shared.form_origin import stored
from playground.ui.shared.labels import visitor_locale
from playground.ui.shared.message import alert

from .painter import SweepPainter

logger = logging.getLogger(__name__)

Offers = Callable[[Run, Locale], str]


@dataclass
class SweepView:
    outcome: gr.HTML
    points: gr.HTML
    charts: gr.HTML

    def outputs(self) -> list[Any]:
        return [self.outcome, self.points, self.charts]

    def of(self, config: Config, sweep: Sweep, locale: Locale) -> dict[Any, Any]:
        """A sweep of the history."""
        painted = SweepPainter(config, sweep, locale).paint()
        return {} if painted is None else dict(zip(self.outputs(), painted, strict=True))

    def nothing(self) -> dict[Any, Any]:
        return {self.outcome: "", self.points: "", self.charts: "{}"}


def build(elem_id: str, *, live: str | None = None) -> SweepView:
    """The components. `elem_id`: of the table of points. `live`: the place whose follower sends their values."""
    parts = [live and f"{live}-{part}" for part in ("outcome", "points", "charts")]
    outcome = view.live_text(parts[0], "parts", "deploy")
    return SweepView(outcome, view.run_list(elem_id, live=parts[1]), view.chart_grid(live=parts[2]))


def wire(
    sweep_view: SweepView,
    host: Host,
    panes: gr.HTML,
    charts: gr.HTML,
    problem: gr.HTML,
    offered: Mapping[gr.HTML, Offers] | None = None,
) -> None:
    """Open the run of a point that is clicked, in a table or in a chart, in these panes and charts. `offered`:
    further updates that depend on the opened run. `problem` says why it can't be opened."""
    more = offered or {}

    async def opened(event: gr.EventData, request: gr.Request) -> Any:
        locale = visitor_locale(request)
        try:
            return await READERS.run(opening, str(event.run), locale)
        except PlaygroundError as error:
            refused(logger, error, "%s is not opened", event.run)
            return {problem: alert(error, locale)}

    def opening(run_id: str, locale: Locale) -> Any:
        run = stored(host, run_id)
        if not isinstance(run, Run):
            return gr.skip()
        with readable(run_id):
            values = dict(zip((panes, charts), view.rendered(host, run, locale), strict=True))
        return {problem: "", **values, **{part: offers(run, locale) for part, offers in more.items()}}

    for clicked in (sweep_view.points, sweep_view.charts):
        # The opened run is displayed below the charts.
        clicked.click(
            opened, None, [problem, panes, charts, *more], show_progress="minimal", concurrency_limit=None
        ).then(None, None, None, js=f"() => document.querySelector('#{panes.elem_id}').scrollIntoView()")
