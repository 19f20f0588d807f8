"""Runs of the history beside each other, as HTML: what differs first, then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.i18n import Locale, say, table
from playground.report.charts import Chart, overlaid, svg
from playground.report.side_by_side import SideBySide
from playground.report.side_by_side import text as texts
from playground.report.side_by_side.text import Table
from playground.runs.host import Host
from playground.store import readable
from playground.ui.shared.field_names import name_of
from playground.ui.shared.form_origin import stored

# Charts that are not folded.
IN_SIGHT = 2


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
        charts = _charts(overlaid(runs, texts.run_names(beside), locale), locale)
        parts = [conclusion if beside.repetition else "", warnings, differing, figures, charts]
    link = f'<span data-compare="{escape(",".join(ids))}"></span>'
    return f'<section class="beside">{link}' + "".join(parts) + "</section>"


def _charts(figures: dict[str, Chart], locale: Locale) -> str:
    """The first ones in sight, the rest folded."""
    drawn = [svg(figure) for figure in figures.values()]
    rest = "".join(drawn[IN_SIGHT:])
    summary = escape(say("beside.more_charts", locale, count=len(drawn) - IN_SIGHT))
    more = f'<details><summary>{summary}</summary><div class="overlaid">{rest}</div></details>' if rest else ""
    return f'<div class="overlaid">{"".join(drawn[:IN_SIGHT])}</div>{more}'


def _run(host: Host, saved_id: str) -> Run:
    record = stored(host, saved_id)
    if not isinstance(record, Run):
        raise InvalidInput("beside.no_run", id=saved_id)
    return record


def _in_words(key: str, locale: Locale) -> str:
    """What a run ran on in words, and a side's setting as its card calls it, after the side's letter."""
    group, _, name = key.partition(".")
    words = texts.name_of(name, locale)
    if len(group) > 1:
        # The form's own names, where it has them.
        last = key.rpartition(".")[2]
        form = next((f"{part}.{last}" for part in ("measure", "ui") if f"{part}.{last}" in table()), None)
        return words if group == "machine" or words != name else say(form, locale) if form else key
    return f"{group} · {name_of(name, locale) if words == name else words}"


def _table(table: Table) -> str:
    heads, rows = table
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f'<div class="scrolled"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
