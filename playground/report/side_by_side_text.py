"""Runs beside each other as tables of texts, for the page and the command line."""

from __future__ import annotations

from playground.i18n import Locale, say, say_message

from .figures import number, percent
from .side_by_side import ComparedRatio, Row, SideBySide

Table = tuple[list[str], list[list[str]]]
LONGEST_VALUE = 200


def conclusion(beside: SideBySide, locale: Locale = "en") -> str:
    """Whether a repetition came to the same."""
    return say(
        {"agrees": "beside.agrees", "changed": "beside.changed", "unknown": "beside.unsure"}[beside.agreement],
        locale,
    )


def warnings(beside: SideBySide, locale: Locale = "en") -> list[str]:
    return [say_message(warning, locale) for warning in beside.warnings]


def difference_table(beside: SideBySide, locale: Locale = "en") -> Table:
    heads = [say("beside.what", locale), *_heads(beside)]
    rows = [[item.key, *((value or "-")[:LONGEST_VALUE] for value in item.values)] for item in beside.differences]
    return heads, rows


def figure_table(beside: SideBySide, locale: Locale = "en") -> Table:
    first, *others = _heads(beside)
    heads = ["", first]
    for other in others:
        heads += [other, say("beside.ratio", locale)]
    return heads, [_cells(row, locale) for row in beside.rows]


def _heads(beside: SideBySide) -> list[str]:
    return [f"{run.created_at[:16].replace('T', ' ')} {run.id[-4:]}" for run in beside.runs]


def _cells(row: Row, locale: Locale) -> list[str]:
    labels = dict.fromkeys(label for label in row.labels if label)
    name = say("beside.speed_up" if row.figure == "speed_up" else f"figure.{row.figure}", locale)
    text = percent if row.figure == "acceptance_rate" else number
    cells = [f"{' / '.join(labels)}: {name}", text(row.values[0])]
    for value, ratio in zip(row.values[1:], row.ratios, strict=True):
        cells += [text(value), _ratio(ratio)]
    return cells


def _ratio(ratio: ComparedRatio | None) -> str:
    if ratio is None:
        return "-"
    interval = "" if ratio.interval is None else f" ({ratio.interval[0]:.2f}-{ratio.interval[1]:.2f})"
    return f"{ratio.ratio:.2f}{interval}"
