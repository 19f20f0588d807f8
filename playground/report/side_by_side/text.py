"""Runs beside each other as tables of texts, for the page and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from playground.domain.record.run import Run
from playground.domain.spec.workload import Objective
from playground.domain.stats.repetition import Change
from playground.domain.stats.verdicts import LOWER_IS_BETTER
from playground.i18n import Locale, say, say_message, table
from playground.report.figures import number, percent
from playground.report.side_by_side import ComparedRatio, Row, SideBySide

Table = tuple[list[str], list[list[str]]]
LONGEST_VALUE = 200


def conclusion(beside: SideBySide, locale: Locale = "en") -> str:
    """Whether a repetition came to the same: with the figures of the first and the other, and what they ran on
    where that is not the same."""
    changes, agreement = beside.changes.changes, beside.changes.agreement
    if agreement == "changed":
        items = [_change(change, beside.objective, locale) for change in changes if not change.agrees]
    else:
        items = [
            _figures(change, beside.objective, locale)
            for change in changes
            if change.baseline or len(changes) == 1
        ]
    sentence = say(f"beside.{agreement}", locale, time=_time(beside.runs[0]), items="; ".join(items))
    if differing := _differing(beside, locale):
        return f"{sentence} {say('beside.ran_on', locale, differing='; '.join(differing))}"
    return f"{sentence} {say('beside.ran_on_the_same', locale)}" if agreement == "changed" else sentence


def _change(change: Change, objective: Objective, locale: Locale) -> str:
    """By how much it is better or worse."""
    worse = (change.ratio > 1) is (change.baseline is None and objective in LOWER_IS_BETTER)
    shares = sorted(abs(ratio - 1) for ratio in change.interval)
    return say(
        f"beside.{'worse' if worse else 'better'}",
        locale,
        figures=_figures(change, objective, locale),
        share=abs(change.ratio - 1),
        low=shares[0],
        high=shares[1],
    )


def _figures(change: Change, objective: Objective, locale: Locale) -> str:
    kind = "side" if change.baseline is None else "speed_up"
    unit = "x" if change.baseline else f" {say(f'sweep.unit_{objective}', locale)}"
    return say(
        f"beside.of_{kind}",
        locale,
        side=change.side,
        baseline=change.baseline,
        first=_with_interval(change.first.value, change.first.interval, unit),
        other=_with_interval(change.other.value, change.other.interval, unit if change.baseline else ""),
    )


def _differing(beside: SideBySide, locale: Locale) -> list[str]:
    """What a repetition ran on that is not the same, as far as all runs know it: once where it is of all sides."""
    letters: dict[tuple[str, str], list[str]] = {}
    for item in beside.differences:
        group, _, name = item.key.partition(".")
        if None not in item.values:
            values = " → ".join(value or "-" for value in item.values)
            letters.setdefault((name or group, values), []).append(group if len(group) == 1 else "")
    return [
        f"{_of(name_of(name, locale), [] if len(sides) == len(beside.runs[0].sides) else sides, locale)} {values}"
        for (name, values), sides in letters.items()
    ]


def _of(name: str, sides: Sequence[str], locale: Locale) -> str:
    return say("beside.of_sides", locale, name=name, sides=", ".join(sides)) if any(sides) else name


def name_of(name: str, locale: Locale) -> str:
    """What a run ran on, in words; anything else as it is."""
    return say(f"beside.{name}", locale) if f"beside.{name}" in table() else name


def warnings(beside: SideBySide, locale: Locale = "en") -> list[str]:
    return [say_message(warning, locale) for warning in beside.warnings]


def difference_table(beside: SideBySide, locale: Locale = "en") -> Table:
    heads = [say("beside.what", locale), *run_names(beside)]
    rows = [[item.key, *((value or "-")[:LONGEST_VALUE] for value in item.values)] for item in beside.differences]
    return heads, rows


def figure_table(beside: SideBySide, locale: Locale = "en") -> Table:
    first, *others = run_names(beside)
    heads = ["", first]
    for other in others:
        heads += [other, say("beside.ratio", locale)]
    return heads, [_cells(row, locale) for row in beside.rows]


def run_names(beside: SideBySide) -> list[str]:
    """What tells the runs apart."""
    return [f"{_time(run)} {run.id[-4:]}" for run in beside.runs]


def _time(run: Run) -> str:
    return run.created_at[:16].replace("T", " ")


def _cells(row: Row, locale: Locale) -> list[str]:
    labels = dict.fromkeys(label for label in row.labels if label)
    name = say("beside.speed_up" if row.figure == "speed_up" else f"figure.{row.figure}", locale)
    text = {"acceptance_rate": percent, "speed_up": _times}.get(row.figure, number)
    unit = " ms" if row.figure.endswith("_ms") else ""
    cells = [f"{' / '.join(labels)}: {name}", _with_unit(text(row.values[0]), unit)]
    for value, ratio in zip(row.values[1:], row.ratios, strict=True):
        cells += [_with_unit(text(value), unit), _ratio(ratio)]
    return cells


def _with_unit(text: str, unit: str) -> str:
    return text if text == "-" else text + unit


def _times(value: float | None) -> str:
    return "-" if value is None else _with_interval(value, None, "x")


def _ratio(ratio: ComparedRatio | None) -> str:
    return "-" if ratio is None else _with_interval(ratio.ratio, ratio.interval)


def _with_interval(value: float, interval: tuple[float, float] | None, unit: str = "") -> str:
    text = "{:.2f}" if value < 10 else "{:.1f}" if value < 100 else "{:.0f}"
    ends = "" if interval is None else f" ({text}-{text})"
    return (text + unit + ends).format(value, *(interval or ()))
