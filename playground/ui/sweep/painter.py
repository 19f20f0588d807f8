"""A sweep as a page shows it: its conclusions, a table of its points, its charts."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from html import escape

from playground.config import Config
from playground.domain.stats.rounds import whole_rounds
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import PointRecord, Sweep
from playground.i18n import Locale, say, say_message
from playground.report.charts import sweep_charts
from playground.report.sweep import conclusions_of
from playground.report.sweep.table import point_table
from playground.runs.comparison import Comparison
from playground.runs.sweep import SweepRun
from playground.ui.shared.charts_value import charts_value
from playground.ui.shared.deploy import deploy_html

# The largest share of the time that painting a sweep under way may use, since it competes with the measurement.
SHARE = 0.05


class SweepPainter:
    """Repaints only when a point has settled, and for large sweeps not after each one: predictions take time."""

    def __init__(self, config: Config, sweep: Sweep, locale: Locale, *, listed: bool = True) -> None:
        """`listed`: it is in this host's history."""
        self._config = config
        self._listed = listed
        self._sweep = sweep
        self._locale = locale
        self._painted: tuple[int, str] | None = None
        self._not_before = 0.0

    def paint(self) -> tuple[str, str, str] | None:
        """The values of the sentences, the table and the charts; None where nothing has changed."""
        sweep = _without_running(self._sweep)
        state = (sum(point.run is not None for point in sweep.points), sweep.status)
        began = time.monotonic()
        if state == self._painted or (began < self._not_before and sweep.status == "running"):
            return None
        self._painted = state
        analysis = SweepAnalysis.of(sweep)
        charts = sweep_charts(analysis, self._locale)
        ended = sweep.status != "running"
        drawn = charts_value(charts, self._locale, ended=ended, lead=next(iter(charts), None))
        painted = self._outcome(analysis), self._table(analysis), drawn
        self._not_before = time.monotonic() + (time.monotonic() - began) / SHARE
        return painted

    def _outcome(self, analysis: SweepAnalysis) -> str:
        locale, sweep = self._locale, analysis.sweep
        done = sum(point.settled for point in sweep.points)
        parts = [sweep.title, say("whatif.done", locale, done=done, count=sweep.plan.most_explored)]
        # All points measured, some for too short a time: "stopped" would contradict the points and the sentence.
        short = sweep.status == "stopped" and done == sweep.plan.most_explored
        ending = "sweep.short" if short else f"race.{sweep.status}"
        head = " · ".join([*parts, say(ending, locale)])
        first, *others = [say_message(sentence, locale) for sentence in conclusions_of(analysis)] or [""]
        headline = f'<p class="headline">{escape(first)}</p>{self._deploy(analysis)}'
        card = f'<section class="recommended">{headline}</section>' if first else ""
        if sweep.status != "running" and self._listed:
            head += f" · {say('race.saved', locale, id=sweep.id)}"
        lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in others)
        title = escape(say("sweep.more", locale, count=len(others)))
        more = f'<details><summary>{title}</summary><ul class="caveats">{lines}</ul></details>' if others else ""
        return f'{card}<p class="note" role="status">{escape(head)}</p><div class="folds">{more}</div>'

    def _deploy(self, analysis: SweepAnalysis) -> str:
        """The snippets that start the recommended engine elsewhere."""
        side = analysis.recommended_side if analysis.sweep.status != "running" else None
        if side is None:
            return ""
        title = say("whatif.deploy", self._locale, side=side.label)
        return deploy_html(self._config, side, self._locale, title)

    def _table(self, analysis: SweepAnalysis) -> str:
        """The table's value. A row opens its point's run."""
        headers, rows = point_table(analysis, self._locale)
        listed = [{"id": point.run_id, "cells": cells} for point, cells in zip(analysis.listed, rows, strict=True)]
        return json.dumps({"headers": headers, "rows": listed})


def _without_running(sweep: Sweep) -> Sweep:
    """The sweep without the run under way: an incomplete point would look complete."""
    points = [
        PointRecord(point.number, point.values)
        if point.run is not None and point.run.status == "running"
        else point
        for point in sweep.points
    ]
    return replace(sweep, points=points)


def progress(sweep_run: SweepRun, locale: Locale) -> str:
    """The point under way and its state, and how long the others will take."""
    sweep, current = sweep_run.sweep, sweep_run.current
    if sweep_run.finished:
        return ""
    # Between two points the last comparison has ended and the next does not exist yet.
    if current is not None and current.live.phase == "finished":
        current = None
    done, count = sum(point.settled for point in sweep.points), sweep.plan.most_explored
    parts = [say("whatif.done", locale, done=done, count=count)]
    if current is not None:
        point = next((point for point in sweep.points if point.run is current.run), None)
        if point is not None:
            parts.append(sweep.plan.described(point.values))
        parts.append(_doing(current, locale))
    if sweep_run.remaining_s:
        parts.append(say("whatif.remaining", locale, minutes=sweep_run.remaining_s / 60))
    bar = f'<div class="track"><div class="bar" style="width: {100 * done / count:.1f}%"></div></div>'
    return f'<div class="sweep-progress" role="status"><p>{escape(" · ".join(parts))}</p>{bar}</div>'


def _doing(comparison: Comparison, locale: Locale) -> str:
    live = comparison.live
    if live.phase == "starting":
        now = time.monotonic()
        stages = [
            f"{side.label}: {say(f'stage.{start.stage}', locale)}"
            + ("" if start.stage == "ready" else f" ({say('race.elapsed', locale, seconds=now - start.since)})")
            for side, start in zip(live.run.sides, live.progress, strict=True)
        ]
        return ", ".join(stages)
    if live.phase == "measuring" and live.run.measurement is not None:
        most = live.run.measurement.max_rounds
        return say("whatif.round", locale, round=min(whole_rounds(live.run) + 1, most), most=most)
    return say(f"race.{'queued' if live.phase == 'waiting' else live.phase}", locale)
