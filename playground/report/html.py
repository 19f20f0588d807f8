"""A run or a sweep as one self-contained page: conclusions, charts with plotly inside, commands, answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message

from .charts import Chart, charts_of, sweep_charts
from .conclusions import conclusions
from .figures import STATISTICS
from .findings import findings
from .side_summary import limitations, race_figures, readable
from .sweep import conclusions_of
from .sweep_table import point_table
from .tables import errors, tables

STYLE = """
body { font-family: sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap } code { overflow-wrap: anywhere }
td, th { padding: .2em .6em; text-align: left; vertical-align: top } td + td { font-variant-numeric: tabular-nums }
"""


def html_report(run: Run, locale: Locale = "en") -> str:
    body = _race(run, locale) if run.measurement is None else _measured(run, locale)
    return _page(run, [*_problem(run.problem, locale), *body], charts_of(run, locale), locale)


def sweep_html(sweep: Sweep, locale: Locale = "en") -> str:
    """The page of a sweep: conclusions, a table with a row for each point, charts."""
    analysis = SweepAnalysis.of(sweep)
    head = f"<p>{escape(' · '.join(part for part in (sweep.title, sweep.preset) if part))}</p>"
    sentences = [say_message(sentence, locale) for sentence in conclusions_of(analysis)]
    lines = [f"<p><strong>{escape(sentence)}</strong></p>" for sentence in sentences]
    body = [head, *lines, _table(*point_table(analysis, locale)), *_started_from(sweep)]
    return _page(sweep, body, sweep_charts(analysis, locale), locale)


def _started_from(sweep: Sweep) -> Iterable[str]:
    """Each side's command at the first point that was measured, and what it ran on."""
    run = next((point.run for point in sweep.points if point.run is not None), None)
    for side in run.sides if run is not None else ():
        where = " · ".join(part for part in (f"vLLM {side.runtime_version or '-'}", side.placement) if part)
        yield f"<h3>{escape(side.label)}</h3><p>{escape(where)}</p><pre>{escape(side.command)}</pre>"
    if run is not None and run.machine:
        gpus = run.machine.get("gpus")
        names = [str(gpu["name"]) for gpu in gpus] if isinstance(gpus, list) else []
        yield f"<p>{escape(' · '.join([str(run.machine.get('cpu', '-')), *names]))}</p>"


def _page(record: Run | Sweep, body: Iterable[str], figures: Mapping[str, Chart], locale: Locale) -> str:
    import plotly.graph_objects as go

    status = escape(say(f"race.{record.status}", locale))
    parts = [f"<h1>{escape(record.id)}</h1><p>{escape(record.created_at)} · {status}</p>", *body]
    for number, figure in enumerate(figures.values()):
        parts.append(go.Figure(figure).to_html(full_html=False, include_plotlyjs=number == 0))
    head = f"<meta charset='utf-8'><title>{escape(record.id)}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='{locale}'><head>{head}</head><body>{''.join(parts)}</body></html>"


def _race(run: Run, locale: Locale) -> Iterable[str]:
    for turn in run.workload.conversation:
        yield f"<h3>{turn.role}</h3><pre>{escape(turn.content)}</pre>"
    for side in run.sides:
        yield from _head(run, side, locale)
        for trace in side.requests:
            yield f"<pre>{escape(readable(side, trace.output_text, locale))}</pre>"
            yield from _problem(trace.problem, locale)
        yield _table([], [list(row) for row in race_figures(side, locale)])
    yield from _findings(run, locale)


def _measured(run: Run, locale: Locale) -> Iterable[str]:
    for conclusion in conclusions(run):
        yield f"<p><strong>{escape(say_message(conclusion.sentence, locale))}</strong></p>"
    yield from _findings(run, locale)
    figures = tables(run, locale)
    labels = [side.label for side in run.sides]
    spread = [
        [row.name, label, *cells]
        for row in figures.distributions
        for label, cells in zip(labels, row.cells, strict=True)
    ]
    yield _table([f"{say('measured.milliseconds', locale)}", "", *STATISTICS], spread)
    yield _table(["", *labels], [[row.name, *(cell for [cell] in row.cells)] for row in figures.single])
    definitions = [[row.name, row.definition] for row in (*figures.distributions, *figures.single)]
    title = escape(say("measured.definitions", locale))
    yield f"<details><summary>{title}</summary>{_table([], definitions)}</details>"
    for side in run.sides:
        yield from _head(run, side, locale)
        yield from (f"<p>{escape(line)}</p>" for line in errors(side.requests, locale))


def _findings(run: Run, locale: Locale) -> Iterable[str]:
    texts = [" ".join(say_message(part, locale) for part in finding.sentences) for finding in findings(run)]
    if texts:
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        yield f"<h3>{escape(say('finding.title', locale))}</h3><ul>{items}</ul>"


def _head(run: Run, side: SideRecord, locale: Locale) -> Iterable[str]:
    yield f"<h2>{escape(side.label)}</h2><p><code>{escape(side.command)}</code></p>"
    yield from _problem(side.problem, locale)
    for known in limitations(side, run.workload.sampling):
        yield f"<p>{escape(say_message(known, locale))}</p>"


def _problem(problem: Message | None, locale: Locale) -> Iterable[str]:
    """The problem as a paragraph, if there is one."""
    if problem is not None:
        yield f"<p><strong>{escape(say_message(problem, locale))}</strong></p>"


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
