"""The command line's `history`: list, show, export."""

from __future__ import annotations

import argparse

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.i18n import say, say_message
from playground.report.documents import compare_document, summary_document
from playground.store import History, readable

from . import sweep as sweep_verb
from .console import print_json, print_run


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
    export.add_argument("--format", choices=["json", "csv", "html"], default="json")
    export.set_defaults(verb=_export)


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
        print(f"{item.id}  {item.created_at}  {item.status:<11}  {item.preset or '-':<24}  {sides}  {prompt}")
    return 0


def _run(run_id: str) -> Run:
    run = _history().get(run_id)
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
    from playground.report.export import exported

    record = _history().sweep(arguments.id) or _run(arguments.id)
    with readable(record.id):
        text = exported(record, arguments.format)
    print(text, end="")
    return 0
