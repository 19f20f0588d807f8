"""What all charts of a sweep share: its results, how a point is told, how one that failed is marked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from playground.domain.speculation.prediction import Prediction
from playground.domain.sweep.analysis import PointResult, SideResult, described, predictions, results, synthetic
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message

from .figure import Chart, noted, titled
from .knob_axis import KnobAxis

FAILED = "#d55e00"


@dataclass
class SweepContext:
    """A sweep as its charts see it. Made anew for each drawing."""

    sweep: Sweep
    locale: Locale

    @cached_property
    def points(self) -> list[PointResult]:
        return results(self.sweep)

    @cached_property
    def predicted(self) -> dict[tuple[int, str], Prediction]:
        return predictions(self.sweep)

    @property
    def labels(self) -> list[str]:
        return [side.label for side in self.sweep.case.sides]

    def of(self, label: str) -> list[tuple[PointResult, SideResult]]:
        """The points at which this side was measured."""
        return [(point, side) for point in self.points if (side := point.of(label)) is not None]

    def text(self, name: str, **params: object) -> str:
        return escape(say(f"curve.{name}", self.locale, **params), quote=False)

    def told(self, point: PointResult) -> str:
        """A point's values, for the text beside the pointer."""
        return escape(described(self.sweep, point.values))

    def figure(self, title: str, x: str, y: str) -> Chart:
        """Without data. What was prescribed, not reached, is marked."""
        mark = f" · {self.text('synthetic')}" if synthetic(self.sweep) else ""
        return titled(title + mark, x, y)

    def against(self, axis: KnobAxis, title: str, y: str) -> Chart:
        """A figure over one knob; `y` is a message id."""
        figure = self.figure(title, "", say(y, self.locale))
        figure["layout"]["xaxis"] |= axis.layout()
        return figure

    def finished(self, figure: Chart, x: KnobAxis) -> Chart:
        """With the failed points at the bottom, whatever the figure's own height means."""
        failed = [point for point in self.points if point.problem is not None]
        if failed:
            figure["data"].append(self.crosses(failed, [x.at(p.values[0]) for p in failed], [0.04] * len(failed)))
            figure["data"][-1]["yaxis"] = "y2"
            figure["layout"]["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
        return noted(figure, "curve.nothing", self.locale)

    def crosses(self, points: list[PointResult], x: list[float], y: list[float]) -> dict[str, Any]:
        """Failed points, each with its reason beside the pointer."""
        return {
            "type": "scatter",
            "mode": "markers",
            "x": x,
            "y": y,
            "name": self.text("failed"),
            "marker": {"symbol": "x", "size": 10, "color": FAILED},
            "customdata": [point.run_id for point in points],
            "text": [f"{self.told(point)}<br>{self._reason(point)}" for point in points],
            "hovertemplate": "%{text}<extra></extra>",
        }

    def _reason(self, point: PointResult) -> str:
        return escape(say_message(point.problem, self.locale)) if point.problem is not None else ""
