"""Runs of the history beside each other, as HTML: what differs first, then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.i18n import Locale, say
from playground.report import side_by_side_text as texts
from playground.report.side_by_side import SideBySide
from playground.report.side_by_side_text import Table
from playground.runs.host import Host
from playground.store import readable
from playground.ui.shared.field_names import name_of
from playground.ui.shared.form_origin import stored


def beside_html(host: Host, ids: Sequence[str], locale: Locale) -> str:
    """Raises InvalidInput for an id that is unknown or a sweep's. Blocking."""
    runs = [_run(host, saved_id) for saved_id in ids]
    with readable(", ".join(ids)):
        beside = SideBySide.of(runs)
        warnings = "".join(f'<p class="warn">{escape(text)}</p>' for text in texts.warnings(beside, locale))
        heads, rows = texts.difference_table(beside, locale)
        differing = _table((heads, [[_in_words(key, locale), *values] for key, *values in rows]))
        if not beside.differences:
            differing = f"<p>{escape(say('beside.nothing', locale))}</p>"
        figures = _table(texts.figure_table(beside, locale))
        conclusion = f"<p><strong>{escape(texts.conclusion(beside, locale))}</strong></p>"
        parts = [conclusion if beside.repetition else "", warnings, differing, figures]
    link = f'<span data-compare="{escape(",".join(ids))}"></span>'
    return f'<section class="beside">{link}' + "".join(parts) + "</section>"


def _run(host: Host, saved_id: str) -> Run:
    record = stored(host, saved_id)
    if not isinstance(record, Run):
        raise InvalidInput("beside.no_run", id=saved_id)
    return record


def _in_words(key: str, locale: Locale) -> str:
    """A side's setting as its card calls it, after the side's letter."""
    letter, _, setting = key.partition(".")
    return f"{letter} · {name_of(setting, locale)}" if len(letter) == 1 else key


def _table(table: Table) -> str:
    heads, rows = table
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f'<div class="scrolled"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
