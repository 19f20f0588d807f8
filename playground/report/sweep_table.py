"""A sweep's points as a table for people, and as CSV for programs: one line a point, or a point and side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from playground.domain.speculation.prediction import Prediction
from playground.domain.stats.verdicts import Verdict
from playground.domain.sweep.analysis import LATENCIES, PointResult, SideResult, predictions, shown
from playground.domain.sweep.plan import value_text
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message

from .csv_text import csv_text
from .figures import number

Interval = tuple[float, float] | None
Predictions = Mapping[tuple[int, str], Prediction]

MEASURED = ("objective", "value", "value_low", "value_high", "output_tokens_per_s")
MEDIANS = tuple(f"{name}_ms_median" for name in LATENCIES)
COMPARED = ("speed_up", "speed_up_low", "speed_up_high", "verdict", "rounds")
PREDICTED = ("predicted", "predicted_low", "predicted_high")


def point_table(sweep: Sweep, locale: Locale) -> tuple[list[str], list[list[str]]]:
    """Headers and a row a point: its values, each side's deciding figure, speed-ups, predictions, how it ended."""
    first, *others = [side.label for side in sweep.case.sides]
    unit = say(f"chart.{sweep.case.workload.objective}", locale)
    predicted = predictions(sweep)
    headers = [knob.key for knob in sweep.plan.knobs]
    headers += [f"{label} · {unit}" for label in (first, *others)]
    headers += [say("curve.speed_up_of", locale, side=label, baseline=first) for label in others]
    if predicted:
        headers += [say("curve.predicted", locale, side=label) for label in others]
    headers.append(say("ui.col_status", locale))
    return headers, [_row(sweep, point, predicted, locale) for point in shown(sweep)]


def _row(sweep: Sweep, point: PointResult, predicted: Predictions, locale: Locale) -> list[str]:
    labels = [side.label for side in sweep.case.sides]
    sides = [point.of(label) for label in labels]
    cells = [value_text(value) for value in point.values]
    cells += [number(side.value if side else None) for side in sides]
    cells += [_verdict(side.verdict if side else None) for side in sides[1:]]
    if predicted:
        cells += [_prediction(predicted.get((point.number, label))) for label in labels[1:]]
    if point.problem is not None:
        return [*cells, say_message(point.problem, locale)]
    run = sweep.points[point.number].run
    return [*cells, say(f"race.{run.status}", locale) if run else "-"]


def _verdict(found: Verdict | None) -> str:
    return "-" if found is None else _ratio(found.speed_up, found.interval)


def _prediction(found: Prediction | None) -> str:
    return "-" if found is None else _ratio(found.speed_up, found.interval)


def _ratio(value: float | None, interval: Interval) -> str:
    ends = "" if interval is None else f"({interval[0]:.2f}–{interval[1]:.2f})"
    return " ".join(part for part in ("" if value is None else f"{value:.2f}x", ends) if part) or "-"


def sweep_csv(sweep: Sweep) -> str:
    """One line a point and side; empty: unknown. Latencies are medians over rounds of each round's median."""
    knobs = [knob.key for knob in sweep.plan.knobs]
    heads = (*MEASURED, *MEDIANS, *COMPARED, "acceptance_rate", *PREDICTED, "problem")
    rows: list[Sequence[object]] = [["sweep_id", "point", *knobs, "run_id", "side", *heads]]
    predicted = predictions(sweep)
    for point in shown(sweep):
        values = [value if type(value) in (int, float) else value_text(value) for value in point.values]
        problem = say_message(point.problem) if point.problem else None
        for label in [side.label for side in sweep.case.sides]:
            figures = _figures(sweep, point.of(label), predicted.get((point.number, label)))
            rows.append([sweep.id, point.number, *values, point.run_id, label, *figures, problem])
    return csv_text(rows)


def _figures(sweep: Sweep, side: SideResult | None, predicted: Prediction | None) -> list[object]:
    foretold = [predicted.speed_up, *_ends(predicted.interval)] if predicted else [None] * len(PREDICTED)
    objective = sweep.case.workload.objective
    if side is None:
        return [objective, *[None] * (len((*MEASURED, *MEDIANS, *COMPARED))), *foretold]
    verdict = side.verdict
    return [
        objective,
        side.value,
        *_ends(side.interval),
        side.throughput.value,
        *(side.medians[name].value for name in LATENCIES),
        *(
            (verdict.speed_up, *_ends(verdict.interval), verdict.verdict, verdict.rounds)
            if verdict
            else [None] * 5
        ),
        side.figures.acceptance_rate,
        *foretold,
    ]


def _ends(interval: Interval) -> tuple[float | None, float | None]:
    return interval or (None, None)
