"""A sweep's points as a table, as CSV and as lines of a terminal: one list of columns for all three."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from playground.domain.speculation.prediction import Prediction
from playground.domain.stats.expenses import EXPENSES
from playground.domain.stats.verdicts import Verdict
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.plan import value_text
from playground.domain.sweep.record import Sweep
from playground.domain.sweep.result import LATENCIES, PointResult, SideResult
from playground.domain.sweep.series import Predictions
from playground.i18n import Locale, say, say_message
from playground.report.exports.csv_text import csv_text
from playground.report.figures import number

Interval = tuple[float, float] | None
Values = Sequence[object]


@dataclass(frozen=True, slots=True)
class Cell:
    """One side at one point. `objective`: the workload's."""

    objective: str
    side: SideResult | None
    prediction: Prediction | None

    @property
    def verdict(self) -> Verdict | None:
        return self.side.verdict if self.side is not None else None


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of each side at each point.

    `heads` are the CSV's column names, `values` the values below them. A column with a `heading` is in the table
    too, as `text`: for each side, or if `compared` for each but the first. One with a `line` is in a point's line
    on a terminal, `line` of the cell and the objective's unit. The heading depends on the side's label, the first
    side's, the objective and the language. An `optional` column is left out of the table where nothing is
    predicted.
    """

    heads: tuple[str, ...]
    values: Callable[[Cell], Values | None]
    heading: Callable[[str, str, str, Locale], str] | None = None
    text: Callable[[Cell], str] = lambda cell: ""
    line: Callable[[Cell, str], str] | None = None
    compared: bool = False
    optional: bool = False

    def filled(self, cell: Cell) -> Values:
        """The values below the heads; None: unknown."""
        return self.values(cell) or [None] * len(self.heads)


def _value(cell: Cell) -> Values | None:
    return (cell.side.objective.value, *_ends(cell.side.objective.interval)) if cell.side else None


def _median(name: str) -> Callable[[Cell], Values | None]:
    return lambda cell: [cell.side.medians[name].value] if cell.side else None


def _expenses(cell: Cell) -> Values | None:
    return [getattr(cell.side.figures, name) for name in EXPENSES] if cell.side else None


def _comparison(cell: Cell) -> Values | None:
    verdict = cell.verdict
    return (verdict.speed_up, *_ends(verdict.interval), verdict.verdict, verdict.rounds) if verdict else None


def _prediction(cell: Cell) -> Values | None:
    prediction = cell.prediction
    return (prediction.speed_up, *_ends(prediction.interval)) if prediction else None


def _speed_up_line(cell: Cell, unit: str) -> str:
    verdict = cell.verdict
    if verdict is None or verdict.speed_up is None:
        return ""
    ends = f", {verdict.interval[0]:.2f}-{verdict.interval[1]:.2f}" if verdict.interval else ""
    return f"({verdict.speed_up:.2f}x{ends})"


COLUMNS = (
    Column(("objective",), lambda cell: [cell.objective]),
    Column(
        ("value", "value_low", "value_high"),
        _value,
        heading=lambda label, _, objective, locale: f"{label} · {say(f'chart.{objective}', locale)}",
        text=lambda cell: number(cell.side.objective.value if cell.side else None),
        line=lambda cell, unit: f"{number(cell.side.objective.value if cell.side else None)} {unit}",
    ),
    Column(("output_tokens_per_s",), lambda cell: [cell.side.throughput.value] if cell.side else None),
    *(Column((f"{name}_ms_median",), _median(name)) for name in LATENCIES),
    Column(
        ("speed_up", "speed_up_low", "speed_up_high", "verdict", "rounds"),
        _comparison,
        heading=lambda label, first, _, locale: say("curve.speed_up_of", locale, side=label, baseline=first),
        text=lambda cell: _ratio(cell.verdict),
        line=_speed_up_line,
        compared=True,
    ),
    Column(("acceptance_rate",), lambda cell: [cell.side.figures.acceptance_rate] if cell.side else None),
    Column(EXPENSES, _expenses),
    Column(
        ("predicted", "predicted_low", "predicted_high"),
        _prediction,
        heading=lambda label, _first, _objective, locale: say("curve.predicted", locale, side=label),
        text=lambda cell: _ratio(cell.prediction),
        compared=True,
        optional=True,
    ),
)


def point_table(analysis: SweepAnalysis, locale: Locale) -> tuple[list[str], list[list[str]]]:
    """Headers and a row a point: its values, each column for each side, how it ended."""
    sweep, labels, predicted = analysis.sweep, analysis.labels, analysis.predictions
    objective = sweep.case.workload.objective
    columns = [
        (column, column.heading(label, labels[0], objective, locale), label)
        for column in COLUMNS
        if column.heading is not None and (predicted or not column.optional)
        for label in (labels[1:] if column.compared else labels)
    ]
    headers = [*(knob.key for knob in sweep.plan.knobs), *(heading for _, heading, _ in columns)]
    rows = [
        [
            *(value_text(value) for value in point.values),
            *(column.text(_cell(sweep, point, label, predicted)) for column, _, label in columns),
            _ending(point, locale),
        ]
        for point in analysis.listed
    ]
    return [*headers, say("ui.col_status", locale)], rows


def sweep_csv(analysis: SweepAnalysis) -> str:
    """One line a point and side; empty: unknown. Latencies are medians over rounds of each round's median."""
    sweep = analysis.sweep
    knobs, heads = [knob.key for knob in sweep.plan.knobs], [head for column in COLUMNS for head in column.heads]
    rows: list[Values] = [["sweep_id", "point", *knobs, "run_id", "side", *heads, "problem"]]
    for point in analysis.listed:
        values = [value if type(value) in (int, float) else value_text(value) for value in point.values]
        problem = say_message(point.problem) if point.problem else None
        for label in analysis.labels:
            cell = _cell(sweep, point, label, analysis.predictions)
            figures = [value for column in COLUMNS for value in column.filled(cell)]
            rows.append([sweep.id, point.number, *values, point.run_id, label, *figures, problem])
    return csv_text(rows)


def point_line(sweep: Sweep, point: PointResult, unit: str) -> str:
    """The knobs' values, then each measured side's figures in a few words; `unit`: the objective's."""
    values = sweep.plan.described(point.values)
    if point.problem is not None:
        return f"{values}: {say_message(point.problem)}"
    cells = {side.label: _cell(sweep, point, side.label, {}) for side in point.sides}
    sides = [
        " ".join([label, *(text for column in COLUMNS if column.line and (text := column.line(cell, unit)))])
        for label, cell in cells.items()
    ]
    return f"{values}: {', '.join(sides) or '-'}"


def _cell(sweep: Sweep, point: PointResult, label: str, predicted: Predictions) -> Cell:
    return Cell(sweep.case.workload.objective, point.side(label), predicted.get((point.number, label)))


def _ending(point: PointResult, locale: Locale) -> str:
    if point.problem is not None:
        return say_message(point.problem, locale)
    return say(f"race.{point.run.status}", locale) if point.run is not None else "-"


def _ratio(estimate: Verdict | Prediction | None) -> str:
    if estimate is None:
        return "-"
    value = [] if estimate.speed_up is None else [f"{estimate.speed_up:.2f}x"]
    ends = [f"({estimate.interval[0]:.2f}–{estimate.interval[1]:.2f})"] if estimate.interval else []
    return " ".join([*value, *ends]) or "-"


def _ends(interval: Interval) -> tuple[float | None, float | None]:
    return interval or (None, None)
