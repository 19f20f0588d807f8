"""A race that has ended, as the pictures that its followers saw, each with its time. The page plays them at its
own pace: however many watch, the server paints once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from playground.config import Config
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale
from playground.report.charts import svg
from playground.report.charts.race import speed_over_time
from playground.ui.shared import view

from . import feeds
from .channel import Parts

# Milliseconds between pictures; of a long race as many pictures as this, so that what is sent stays small.
STEP_MS, MOST_PICTURES = 50, 400
# One in so many pictures has the chart.
CHART_EVERY = 8

# Milliseconds since the race began, and what changed.
Picture = tuple[int, Parts]


def pictures(config: Config, record: Run | Sweep, locale: Locale, *, listed: bool) -> list[Picture]:
    """The last picture is of the whole: a page may begin with it. What has no times of its own has no other.
    `listed`: it is in this host's history. Blocking."""
    growing = [] if isinstance(record, Sweep) or record.mode != "race" else list(_growing(config, record, locale))
    end = growing[-1][0] + STEP_MS if growing else 0
    return [*growing, (end, feeds.stored(config, record, locale, listed=listed))]


def _growing(config: Config, run: Run, locale: Locale) -> Iterator[Picture]:
    race = GrowingRace(run)
    if not race.ends_ms:
        return
    painter = view.painter(config, race.run, locale)
    step = max(STEP_MS, race.ends_ms / MOST_PICTURES)
    for number in range(int(race.ends_ms / step) + 1):
        race.grow(number * step)
        parts = {"panes": painter.paint(whole=number == 0, at_s=number * step / 1000)}
        if number % CHART_EVERY == 0:
            chart = speed_over_time(race.run.sides, locale)
            parts["charts"] = json.dumps({"lead": svg(chart) if chart["data"] else ""})
        yield round(number * step), parts


class GrowingRace:
    """A run that grows into a stored race. `ends_ms`: when its last chunk came; 0 where nothing has a time."""

    def __init__(self, stored: Run) -> None:
        self._stored = stored
        self.run = replace(stored, status="running", sides=[_begun(side) for side in stored.sides])
        self.ends_ms = max((_ends_ms(trace) for side in stored.sides for trace in side.requests), default=0.0)

    def grow(self, until_ms: float) -> None:
        """Add what had come by then."""
        for side, stored in zip(self.run.sides, self._stored.sides, strict=True):
            side.samples = [sample for sample in stored.samples if sample.ms <= until_ms]
            for trace, whole in zip(side.requests, stored.requests, strict=True):
                passed = until_ms - whole.sent_ms
                trace.chunks += [chunk for chunk in whole.chunks[len(trace.chunks) :] if chunk.ms <= passed]


def _begun(side: SideRecord) -> SideRecord:
    trials = [
        replace(trial, after=None, requests=[_sent(trace) for trace in trial.requests]) for trial in side.trials
    ]
    return replace(side, figures=None, problem=None, samples=[], trials=trials)


def _sent(trace: RequestTrace) -> RequestTrace:
    return RequestTrace(trace.conversation, sent_ms=trace.sent_ms)


def _ends_ms(trace: RequestTrace) -> float:
    return trace.sent_ms + trace.chunks[-1].ms if trace.chunks else 0.0
