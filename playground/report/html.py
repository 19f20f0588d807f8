"""A run or a sweep as one self-contained page: the answer, static charts, figures, commands, answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say, say_message
from playground.report.answer import race_sentences, unlike
from playground.report.answer.html import answer_html
from playground.report.sweep import conclusions_of
from playground.report.sweep.table import point_table

from .charts import Chart, charts_of, informative, svg, sweep_charts
from .conclusions import conclusions
from .engine_path import path_html
from .figures import statistics_heads
from .findings import findings
from .side_summary import limitations, race_figures, readable, start_text
from .tables import errors, tables

STYLE = """
:root { color-scheme: light dark }
body { font-family: system-ui, sans-serif; line-height: 1.5; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; line-height: 1.3 } .about { opacity: .75 }
.answer-row { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 2rem; margin: 1rem 0;
  border-left: 4px solid var(--side); padding: .25rem 1rem }
.number strong { display: block; font-size: 3rem; line-height: 1 } .sureness { flex: 1 1 18rem; max-width: 29rem }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem }
svg { display: block; width: 100%; height: auto }
pre { white-space: pre-wrap } code { overflow-wrap: anywhere }
td, th { padding: .2em .6em; text-align: left; vertical-align: top } td + td { font-variant-numeric: tabular-nums }
"""


def html_report(run: Run, locale: Locale = "en") -> str:
    body = _race(run, locale) if run.measurement is None else _measured(run, locale)
    if run.measurement is None:
        head = race_sentences(run) if run.status == "done" else []
    else:
        head = [item.sentence for item in conclusions(run) if item.kind == "headline"]
    beside = [f"<p>{escape(say_message(what, locale))}</p>" for what in unlike(run)]
    parts = [answer_html(run, locale), *beside, *_problem(run.problem, locale), *body]
    return _page(run, head, parts, charts_of(run, locale), locale)


def sweep_html(sweep: Sweep, locale: Locale = "en") -> str:
    """The page of a sweep: conclusions, a table with a row for each point, charts."""
    analysis = SweepAnalysis.of(sweep)
    first, *others = conclusions_of(analysis) or [Message("sweep.nothing_measured")]
    lines = [f"<p>{escape(say_message(sentence, locale))}</p>" for sentence in others]
    body = [f"<p>{escape(sweep.title)}</p>", *lines, _table(*point_table(analysis, locale)), *_started_from(sweep)]
    return _page(sweep, [first], body, sweep_charts(analysis, locale), locale)


def _started_from(sweep: Sweep) -> Iterable[str]:
    """Each side's command at the first point that was measured, and what it ran on."""
    run = next((point.run for point in sweep.points if point.run is not None), None)
    for side in run.sides if run is not None else ():
        where = " · ".join(part for part in (side.engine or "-", side.placement) if part)
        yield f"<h3>{escape(side.label)}</h3><p>{escape(where)}</p><pre>{escape(side.command)}</pre>"
    if run is not None and run.machine:
        gpus = run.machine.get("gpus")
        names = [str(gpu["name"]) for gpu in gpus] if isinstance(gpus, list) else []
        yield f"<p>{escape(' · '.join([str(run.machine.get('cpu', '-')), *names]))}</p>"


def _page(
    record: Run | Sweep,
    sentences: Sequence[Message],
    body: Iterable[str],
    figures: dict[str, Chart],
    locale: Locale,
) -> str:
    """The sentences are the headline; the status stands in for them where there is none."""
    status = say(f"race.{record.status}", locale)
    headline = " ".join(say_message(sentence, locale) for sentence in sentences) or status
    about = " · ".join(part for part in (record.id, record.created_at, record.preset, status) if part)
    said, silent = informative(figures)
    parts = [f"<h1>{escape(headline)}</h1><p class='about'>{escape(about)}</p>", *body]
    parts.append(f"<div class='charts'>{''.join(svg(figure) for figure in said.values())}</div>")
    if silent:
        parts.append(f"<p>{say('chart.left_out', locale, titles=' · '.join(silent))}</p>")
    viewport = "<meta name='viewport' content='width=device-width'>"
    head = f"<meta charset='utf-8'>{viewport}<title>{escape(headline)}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='{locale}'><head>{head}</head><body>{''.join(parts)}</body></html>"


def _race(run: Run, locale: Locale) -> Iterable[str]:
    for turn in run.workload.conversation:
        yield f"<h3>{turn.role}</h3><pre>{escape(turn.content)}</pre>"
    for side in run.sides:
        yield from _head(run, side, locale)
        for trace in side.requests:
            yield f"<pre>{escape(readable(side, trace.output_text, locale))}</pre>"
            yield from _problem(trace.problem, locale)
        yield _table([], [[name, value] for name, value, _ in race_figures(side, locale)])
    yield from _findings(run, locale)
    yield _definitions([[name, meaning] for name, _, meaning in race_figures(run.sides[0], locale)], locale)


def _measured(run: Run, locale: Locale) -> Iterable[str]:
    for conclusion in conclusions(run):
        if conclusion.kind != "headline":
            yield f"<p>{escape(say_message(conclusion.sentence, locale))}</p>"
    yield from _findings(run, locale)
    figures = tables(run, locale)
    labels = [side.label for side in run.sides]
    spread = [
        [row.name, label, *cells]
        for row in figures.distributions
        for label, cells in zip(labels, row.cells, strict=True)
    ]
    yield _table([f"{say('measured.milliseconds', locale)}", "", *statistics_heads(locale)], spread)
    yield _table(["", *labels], [[row.name, *(cell for [cell] in row.cells)] for row in figures.single])
    definitions = [[row.name, row.definition] for row in (*figures.distributions, *figures.single)]
    yield _definitions(definitions, locale)
    for side in run.sides:
        yield from _head(run, side, locale)
        yield from (f"<p>{escape(line)}</p>" for line in errors(side.requests, locale))


def _definitions(rows: list[list[str]], locale: Locale) -> str:
    title = escape(say("measured.definitions", locale))
    return f"<details><summary>{title}</summary>{_table([], rows)}</details>"


def _findings(run: Run, locale: Locale) -> Iterable[str]:
    texts = [" ".join(say_message(part, locale) for part in finding.sentences) for finding in findings(run)]
    if texts:
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        yield f"<h3>{escape(say('finding.title', locale))}</h3><ul>{items}</ul>"


def _head(run: Run, side: SideRecord, locale: Locale) -> Iterable[str]:
    yield f"<h2>{escape(side.label)}</h2><p><code>{escape(side.command)}</code></p>"
    yield from _problem(side.problem, locale)
    if text := start_text(side, locale):
        yield f"<p>{escape(text)}</p>"
    for known in limitations(side, run.workload.sampling):
        yield f"<p>{escape(say_message(known, locale))}</p>"
    yield path_html(side.path, (), locale)


def _problem(problem: Message | None, locale: Locale) -> Iterable[str]:
    """The problem as a paragraph, if there is one."""
    if problem is not None:
        yield f"<p><strong>{escape(say_message(problem, locale))}</strong></p>"


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
