"""A preset's trend as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from playground.i18n import Locale
from playground.report.trend.chart import trend_text
from playground.report.trend.trend import Trend

from .parts import SCHEMA_VERSION, Interval, SchemaVersion, Time


class TrendPointDocument(TypedDict):
    run_id: str
    created_at: Time
    value: float
    interval: Interval | None
    """95%, of a speed-up; null without enough rounds."""


class TrendChangeDocument(TypedDict):
    run_id: str
    """The first run of which it holds."""
    kind: Literal["version", "driver", "machine", "settings"]
    before: str | None
    after: str | None
    """null for settings."""
    keys: Sequence[str]
    """Of settings, as in side_by_side's differences; else empty."""


class TrendDocument(TypedDict):
    """history trend PRESET --json."""

    schema: SchemaVersion
    preset: str
    figure: Literal["speed_up", "output_tokens_per_s"]
    """speed_up: of measured runs, of the side that differs most from the first; tokens a second: of the fastest
    side of races."""
    sentence: str
    points: Annotated[list[TrendPointDocument], Field(min_length=1)]
    """From the earliest on."""
    changes: list[TrendChangeDocument]


def trend_document(trend: Trend, locale: Locale = "en") -> TrendDocument:
    return {
        "schema": SCHEMA_VERSION,
        "preset": trend.preset,
        "figure": trend.figure,
        "sentence": trend_text(trend, locale),
        "points": [
            {
                "run_id": point.run_id,
                "created_at": point.created_at,
                "value": point.value,
                "interval": point.interval,
            }
            for point in trend.points
        ],
        "changes": [
            {
                "run_id": trend.points[change.at].run_id,
                "kind": change.kind,
                "before": change.before,
                "after": change.after,
                "keys": change.keys,
            }
            for change in trend.changes
        ],
    }
