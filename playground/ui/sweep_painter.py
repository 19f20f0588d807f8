"""What a page shows of a sweep: what it comes to, its points in a table, its charts."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from html import escape

from ..charts import sweep_charts
from ..compare import Comparison
from ..domain.prediction import Prediction
from ..domain.rounds import whole_rounds
from ..domain.statistics import Verdict
from ..domain.sweep import PointRecord, Sweep, value_text
from ..domain.sweep_results import PointResult, described, predictions, results
from ..facts import number
from ..sweep import Sweeping
from ..sweep_report import conclusions_of
from ..text import Locale, say, say_problem


class SweepPainter:
    """Paints again only when a point has settled: results are computed from every chunk."""

    def __init__(self, sweep: Sweep, locale: Locale) -> None:
        self._sweep = sweep
        self._locale = locale
        self._painted: tuple[int, str] | None = None

    def paint(self) -> tuple[str, str, str] | None:
        """The values of the sentences, the table and the charts; None where nothing has changed."""
        sweep = _at_rest(self._sweep)
        state = (sum(point.run is not None for point in sweep.points), sweep.status)
        if state == self._painted:
            return None
        self._painted = state
        return self._outcome(sweep), self._table(sweep), json.dumps(sweep_charts(sweep, self._locale))

    def _outcome(self, sweep: Sweep) -> str:
        locale, done = self._locale, sum(point.settled for point in sweep.points)
        parts = [sweep.asked, say("whatif.done", locale, done=done, count=len(sweep.points))]
        head = " · ".join([*parts, say(f"race.{sweep.status}", locale)])
        sentences = [say_problem(found, locale) for found in conclusions_of(sweep)]
        if sweep.status != "running":
            sentences.append(say("race.saved", locale, id=sweep.id))
        lines = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        return f'<p class="headline" role="status">{escape(head)}</p><div class="note">{lines}</div>'

    def _table(self, sweep: Sweep) -> str:
        """As the list of runs wants it: a row opens its point's run."""
        first, *others = [side.label for side in sweep.case.sides]
        unit = say(f"chart.{sweep.case.workload.objective}", self._locale)
        predicted = predictions(sweep)
        headers = [knob.key for knob in sweep.plan.knobs]
        headers += [f"{label} · {unit}" for label in (first, *others)]
        headers += [say("curve.speed_up_of", self._locale, side=label, baseline=first) for label in others]
        if predicted:
            headers += [say("curve.predicted", self._locale, side=label) for label in others]
        headers.append(say("ui.col_status", self._locale))
        rows = [{"id": point.run_id, "cells": self._row(sweep, point, predicted)} for point in results(sweep)]
        return json.dumps({"headers": headers, "rows": rows})

    def _row(self, sweep: Sweep, point: PointResult, predicted: dict[tuple[int, str], Prediction]) -> list[str]:
        labels = [side.label for side in sweep.case.sides]
        sides = [point.of(label) for label in labels]
        cells = [value_text(value) for value in point.values]
        cells += [number(side.value if side else None) for side in sides]
        cells += [_verdict(side.verdict if side else None) for side in sides[1:]]
        if predicted:
            cells += [_prediction(predicted.get((point.number, label))) for label in labels[1:]]
        status = sweep.points[point.number].run
        state = say(f"race.{status.status}", self._locale) if status else "-"
        return [*cells, say_problem(point.problem, self._locale) if point.problem else state]


def _verdict(found: Verdict | None) -> str:
    return "-" if found is None else _ratio(found.speed_up, found.interval)


def _prediction(found: Prediction | None) -> str:
    return "-" if found is None else _ratio(found.speed_up, found.interval)


def _ratio(value: float | None, interval: tuple[float, float] | None) -> str:
    ends = "" if interval is None else f"({interval[0]:.2f}–{interval[1]:.2f})"
    return " ".join(part for part in ("" if value is None else f"{value:.2f}x", ends) if part) or "-"


def _at_rest(sweep: Sweep) -> Sweep:
    """Without the run under way: half a point would pass for a whole one."""
    points = [
        PointRecord(point.number, point.values)
        if point.run is not None and point.run.status == "running"
        else point
        for point in sweep.points
    ]
    return replace(sweep, points=points)


def progress(sweeping: Sweeping, locale: Locale) -> str:
    """Which point is under way and what it does, and how long the others will take."""
    sweep, current = sweeping.sweep, sweeping.current
    if sweeping.finished:
        return ""
    done, count = sum(point.settled for point in sweep.points), len(sweep.points)
    parts = [say("whatif.done", locale, done=done, count=count)]
    if current is not None:
        point = next((point for point in sweep.points if point.run is current.run), None)
        if point is not None:
            parts.append(described(sweep, point.values))
        parts.append(_doing(current, locale))
    if sweeping.remaining_s is not None:
        parts.append(say("whatif.remaining", locale, minutes=sweeping.remaining_s / 60))
    bar = f'<progress max="{count}" value="{done}"></progress>'
    return f'<div class="sweep-progress" role="status">{bar}<p>{escape(" · ".join(parts))}</p></div>'


def _doing(comparison: Comparison, locale: Locale) -> str:
    live = comparison.live
    if live.phase == "starting":
        now = time.monotonic()
        stages = [
            f"{side.label}: {say(f'stage.{one.stage}', locale)}"
            + ("" if one.stage == "ready" else f" ({say('race.elapsed', locale, seconds=now - one.since)})")
            for side, one in zip(live.run.sides, live.progress, strict=True)
        ]
        return ", ".join(stages)
    if live.phase == "measuring" and live.run.measurement is not None:
        most = live.run.measurement.max_rounds
        return say("whatif.round", locale, round=min(whole_rounds(live.run) + 1, most), most=most)
    return say(f"race.{'queued' if live.phase == 'waiting' else live.phase}", locale)
