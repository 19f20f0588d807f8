"""How the command line prints runs for people."""

from __future__ import annotations

from collections.abc import Sequence

from playground.domain.record.figures import SideFigures
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.workload import Objective
from playground.domain.stats.rounds import rounds_of
from playground.engine.failures.remedies import change_label, remedy_of
from playground.i18n import say, say_message
from playground.report.conclusions import conclusions
from playground.report.engine_path import path_line
from playground.report.figures import DISTRIBUTIONS, SINGLE_VALUES, STATISTICS
from playground.report.findings import findings
from playground.report.side_by_side import SideBySide
from playground.report.side_by_side import text as texts
from playground.report.side_summary import limitations, race_figures, readable, start_text
from playground.report.tables import errors

UNITS: dict[Objective, str] = {"tpot": "ms", "ttft": "ms", "throughput": "tokens/s", "goodput": "requests/s"}


def print_run(run: Run) -> None:
    """Print every side's figures, the answers too if each side gave one, then the conclusions."""
    print(f"{run.id}  {run.created_at}  {say(f'race.{run.status}')}  {run.preset or ''}")
    for turn in run.workload.conversation if run.measurement is None else ():
        print(f"{turn.role}: {turn.content}")
    for side in run.sides:
        _print_side(run, side)
    print()
    for line in round_lines(run):
        print(line)
    if run.problem is not None:
        print(say_message(run.problem))
    print_lines(remedy_lines(run))
    for conclusion in conclusions(run):
        print(say_message(conclusion.sentence))
    if run.measurement is None and any(side.contended for side in run.sides):
        print(say("race.contended"))
    for finding in findings(run):
        print("-", *(say_message(sentence) for sentence in finding.sentences))


def _print_side(run: Run, side: SideRecord) -> None:
    lines = [side.command, start_text(side), path_line(side.path) if side.path is not None else None]
    print(f"\n== {side.label} ({side.placement or '-'}) ==", *filter(None, lines), sep="\n")
    if run.measurement is None:
        _print_race(side)
    else:
        print_figures(side_figures(side, run.measurement))
        print_lines(errors(side.requests))
    for known in limitations(side, run.workload.sampling):
        print(say_message(known))


def remedy_lines(run: Run) -> list[str]:
    """The remedy for each side that failed, and the settings to change."""
    lines: list[str] = []
    for side in run.sides:
        if (remedy := remedy_of(side, run.machine)) is not None:
            lines.append(f"{side.label}: {say_message(remedy.advice)}")
            lines += [f"  - {say_message(change_label(change))}" for change in remedy.changes]
    return lines


def _print_race(side: SideRecord) -> None:
    for trace in side.requests:
        print(readable(side, trace.output_text))
        if trace.problem:
            print(say_message(trace.problem))
    print("  ".join(f"{name} {value}" for name, value, _ in race_figures(side)))


def round_lines(run: Run) -> list[str]:
    """A line for each whole round: the deciding figure of each side, in the order in which they served."""
    unit = UNITS[run.workload.objective]
    return [
        say(
            "measured.round",
            number=completed.number + 1,
            values=", ".join(f"{label} {number(completed.values[label])} {unit}" for label in completed.order),
        )
        for completed in rounds_of(run)
    ]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def print_side_by_side(beside: SideBySide) -> None:
    """Print what differs first, then the figures with their ratios."""
    for warning in texts.warnings(beside):
        print(f"! {warning}")
    tables = [texts.figure_table(beside)]
    if beside.differences:
        tables.insert(0, texts.difference_table(beside))
    else:
        print(say("beside.nothing"))
    for heads, rows in tables:
        print()
        lines = [heads, *([" ".join(cell.split())[:60] for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if beside.repetition:
        print(f"\n{texts.conclusion(beside)}")


def print_figures(figures: SideFigures) -> None:
    print(f"{say('measured.milliseconds'):<16}" + "".join(f"{name:>10}" for name in STATISTICS))
    for figure in DISTRIBUTIONS:
        print(f"{figure.label():<16}" + "".join(f"{cell:>10}" for cell in figure.cells(figures)))
    values = [(figure.label(), figure.cell(figures)) for figure in SINGLE_VALUES]
    print("  ".join(f"{label} {text}" for label, text in values if text != "-"))


def print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)
