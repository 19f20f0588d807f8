"""A race that has ended, as the pictures that its followers saw, each with its time. The page plays them at its
own pace: however many watch, the server paints once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message
from playground.report import recordings
from playground.report.charts import svg
from playground.report.charts.race import speed_over_time
from playground.runs.host import Host
from playground.store import readable
from playground.ui.shared import view
from playground.ui.shared.form_origin import stored

from . import feeds
from .channel import Parts

# Milliseconds between pictures; of a long race as many pictures as this, so that what is sent stays small.
STEP_MS, MOST_PICTURES = 50, 400
# One in so many pictures has the chart.
CHART_EVERY = 8

# Replays that are kept, of some 150 KB each.
MOST_KEPT = 24

# Milliseconds since the race began, and what changed.
Picture = tuple[int, Parts]
TEXTS = ("again", "end", "link", "copied", "close")


class Replays:
    """What the page plays, painted once for each language."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._painted = lru_cache(MOST_KEPT)(self._paint)

    def replay(self, kind: str, name: str, locale: Locale) -> dict[str, Any]:
        """`pictures`, what they were recorded on, `others` of the same preset, and the texts of the buttons.
        Blocking. Raises InvalidInput for an unknown name, WorkFailed for what can't be read."""
        return self._painted(kind, name, locale)

    def _paint(self, kind: str, name: str, locale: Locale) -> dict[str, Any]:
        listed = kind != "recording"
        record = stored(self._host, name) if listed else recordings.load(name)
        if record is None or record.status == "running":
            raise InvalidInput("kept.unknown", id=name)
        with readable(name):
            return {
                "pictures": pictures(self._host, record, locale, listed=listed),
                "origin": " ".join(say_message(said, locale) for said in recordings.origin(record)),
                "others": [] if listed else _others(name, locale),
                "texts": {text: say(f"replay.{text}", locale) for text in TEXTS},
            }


def _others(name: str, locale: Locale) -> list[tuple[str, str]]:
    """The other recordings of the same preset, and what a button says that leads there."""
    same = (other for other in recordings.names() if recordings.preset_of(other) == recordings.preset_of(name))
    return [(other, say(f"gallery.{recordings.kind_of(other)}", locale)) for other in same if other != name]


def pictures(host: Host, record: Run | Sweep, locale: Locale, *, listed: bool) -> list[Picture]:
    """The last picture is of the whole: a page may begin with it. What has no times of its own has no other.
    `listed`: it is in this host's history. Blocking."""
    growing = (
        [] if isinstance(record, Sweep) or record.mode != "race" else list(_growing(host.config, record, locale))
    )
    end = growing[-1][0] + STEP_MS if growing else 0
    return [*growing, (end, feeds.stored(host, record, locale, listed=listed))]


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

    def __init__(self, ended: Run) -> None:
        self._ended = ended
        self.run = replace(ended, status="running", sides=[_begun(side) for side in ended.sides])
        self.ends_ms = max((_ends_ms(trace) for side in ended.sides for trace in side.requests), default=0.0)

    def grow(self, until_ms: float) -> None:
        """Add what had come by then."""
        for side, ended in zip(self.run.sides, self._ended.sides, strict=True):
            side.samples = [sample for sample in ended.samples if sample.ms <= until_ms]
            for trace, whole in zip(side.requests, ended.requests, strict=True):
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
