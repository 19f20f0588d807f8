"""The command line's `history`: list, show, compare, export, backup, prune."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timedelta
from pathlib import Path

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.i18n import say, say_message
from playground.report.answer.text import result_text
from playground.report.documents.comparison import compare_document
from playground.report.documents.side_by_side import side_by_side_document
from playground.report.documents.summary import summary_document
from playground.report.documents.trend import trend_document
from playground.report.side_by_side import MOST_RUNS, SideBySide
from playground.report.trend.chart import trend_text
from playground.report.trend.trend import Trend
from playground.store import History, readable

from ..console import print_run, print_side_by_side
from ..streams import print_json
from . import sweep as sweep_verb

UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its actions."""
    actions = verbs.add_parser("history", help=say("cli.history")).add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help=say("cli.history_list"))
    listing.add_argument("--json", action="store_true", help=say("cli.json"))
    listing.set_defaults(verb=_list)
    show = actions.add_parser("show", help=say("cli.history_show"))
    show.add_argument("id")
    show.add_argument("--json", action="store_true", help=say("cli.json"))
    show.set_defaults(verb=_show)
    export = actions.add_parser("export", help=say("cli.history_export"))
    export.add_argument("id")
    formats = ["json", "csv", "html", "vllm-bench", "original"]
    export.add_argument("--format", choices=formats, default="json", help=say("cli.export_format"))
    export.add_argument("--side", metavar="LABEL", help=say("cli.export_side"))
    export.set_defaults(verb=_export)

    beside = actions.add_parser("compare", help=say("cli.history_compare"))
    beside.add_argument("ids", nargs="+", metavar="ID")
    beside.add_argument("--json", action="store_true", help=say("cli.json"))
    beside.set_defaults(verb=_compare)
    trend = actions.add_parser("trend", help=say("cli.history_trend"))
    trend.add_argument("preset", help=say("cli.preset"))
    trend.add_argument("--json", action="store_true", help=say("cli.json"))
    trend.set_defaults(verb=_trend)
    backup = actions.add_parser("backup", help=say("cli.history_backup"))
    backup.add_argument("file", type=Path)
    backup.set_defaults(verb=_backup)
    prune = actions.add_parser("prune", help=say("cli.history_prune"))
    prune.add_argument("--older-than", metavar="DAYS", type=_days, help=say("cli.older_than"))
    prune.add_argument("--larger-than", metavar="SIZE", type=_bytes, help=say("cli.larger_than"))
    prune.set_defaults(verb=_prune)


def _days(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,5})d?", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(say("cli.bad_days", value=text))
    return float(match[1])


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,6})([MGT])B?", text.upper(), re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(say("cli.bad_size", value=text))
    return int(match[1]) * UNITS[match[2]]


def _history() -> History:
    return History(Config.from_environment().db)


def _list(arguments: argparse.Namespace) -> int:
    summaries = _history().summaries()
    if arguments.json:
        print_json([summary_document(summary) for summary in summaries])
        return 0
    for item in summaries:
        sides = " | ".join(item.labels)
        prompt = " ".join(item.prompt.split())[:60] if item.problem is None else say_message(item.problem)
        result = result_text(item.result.headline)
        facts = f"{item.status:<11}  {item.preset or '-':<24}  {result:<36}"
        print(f"{item.id}  {item.created_at}  {facts}  {sides}  {prompt}")
    return 0


def _run(run_id: str, history: History | None = None) -> Run:
    run = (history or _history()).get(run_id)
    if run is None:
        raise InvalidInput("history.no_such_run", id=run_id)
    return run


def _show(arguments: argparse.Namespace) -> int:
    if (sweep := _history().sweep(arguments.id)) is not None:
        sweep_verb.show(Config.from_environment(), sweep, as_json=arguments.json)
        return 0
    run = _run(arguments.id)
    with readable(run.id):
        print_json(compare_document(run)) if arguments.json else print_run(run)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    # Imported here, because it draws charts, and other verbs should not wait for plotting.
    from playground.report.exports.files import exported

    record = _history().sweep(arguments.id) or _run(arguments.id)
    with readable(record.id):
        text = exported(record, arguments.format, side=arguments.side)
    print(text, end="")
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    history = _history()
    with readable(", ".join(arguments.ids)):
        beside = SideBySide.of([_run(run_id, history) for run_id in arguments.ids[: MOST_RUNS + 1]])
        print_json(side_by_side_document(beside)) if arguments.json else print_side_by_side(beside)
    return 0


def _trend(arguments: argparse.Namespace) -> int:
    trend = Trend.of(_history(), arguments.preset)
    if arguments.json:
        print_json(trend_document(trend))
        return 0
    print(trend_text(trend))
    for at, point in enumerate(trend.points):
        interval = "" if point.interval is None else f"({point.interval[0]:.2f}-{point.interval[1]:.2f})"
        changed = "; ".join(say_message(trend.sentence(change)) for change in trend.changes if change.at == at)
        print(f"{point.created_at[:16]}  {point.run_id}  {point.value:.4g}  {interval:<11}  {changed}".rstrip())
    return 0


def _backup(arguments: argparse.Namespace) -> int:
    _history().backup(arguments.file)
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    days, most = arguments.older_than, arguments.larger_than
    if days is None and most is None:
        raise InvalidInput("cli.prune_what")
    before = None if days is None else (datetime.now().astimezone() - timedelta(days=days)).isoformat()
    print(say("cli.pruned", count=_history().prune(before=before, most_bytes=most)))
    return 0
