"""What all charts of a sweep share: its analysis, the description of a point, the marks of failed points."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.domain.sweep.result import PointResult, SideResult
from playground.i18n import Locale, say, say_message

from .chart import Chart, noted, titled
from .knob_axis import KnobAxis

FAILED = "#d55e00"


@dataclass(frozen=True, slots=True)
class SweepContext:
    """The analysis of a sweep as its charts need it, and their language."""

    analysis: SweepAnalysis
    locale: Locale

    @property
    def sweep(self) -> Sweep:
        return self.analysis.sweep

    @property
    def labels(self) -> list[str]:
        return self.analysis.labels

    @property
    def objective(self) -> str:
        return self.sweep.case.workload.objective

    def of(self, label: str) -> list[tuple[PointResult, SideResult]]:
        """The points at which this side was measured."""
        return [(point, side) for point in self.analysis.points if (side := point.side(label)) is not None]

    def run_id(self, number: int) -> str | None:
        """The point's run, which a click on its mark opens."""
        return self.analysis.points[number].run_id

    def text(self, name: str, **params: object) -> str:
        return escape(say(f"curve.{name}", self.locale, **params), quote=False)

    def described(self, point: PointResult) -> str:
        """A point's values, as the text beside the pointer."""
        return escape(self.sweep.plan.described(point.values))

    def figure(self, title: str, x: str, y: str) -> Chart:
        """A figure without data. Synthetic acceptance is marked, since it was prescribed rather than reached."""
        mark = f" · {self.text('synthetic')}" if self.sweep.synthetic else ""
        return titled(title + mark, x, y)

    def against(self, axis: KnobAxis, title: str, y: str) -> Chart:
        """A figure over one knob; `y` is a message id."""
        figure = self.figure(title, "", say(y, self.locale))
        figure["layout"]["xaxis"] |= axis.layout()
        return figure

    def finished(self, figure: Chart, x: KnobAxis) -> Chart:
        """Add the failed points at the bottom, whatever the figure's height means."""
        failed = [point for point in self.analysis.points if point.problem is not None]
        if failed:
            places = [x.at(point.values[0]) for point in failed], [0.04] * len(failed)
            figure["data"].append(self.crosses(failed, *places) | {"yaxis": "y2"})
            figure["layout"]["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
        return noted(figure, "curve.nothing", self.locale)

    def crosses(self, points: list[PointResult], x: list[float], y: list[float]) -> dict[str, Any]:
        """The failed points, each with its reason beside the pointer."""
        return {
            "type": "scatter",
            "mode": "markers",
            "x": x,
            "y": y,
            "name": self.text("failed"),
            "marker": {"symbol": "x", "size": 10, "color": FAILED},
            "customdata": [point.run_id for point in points],
            "text": [f"{self.described(point)}<br>{self._reason(point)}" for point in points],
            "hovertemplate": "%{text}<extra></extra>",
        }

    def _reason(self, point: PointResult) -> str:
        return escape(say_message(point.problem, self.locale)) if point.problem is not None else ""
