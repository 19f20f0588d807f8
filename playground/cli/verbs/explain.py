"""The command line's `explain`."""

from __future__ import annotations

import argparse

from playground.config import Config
from playground.engine.failures.explanation import Explanation, explain
from playground.engine.failures.remedies import change_label
from playground.i18n import say, say_message
from playground.report.documents.explanation import explanation_document

from ..streams import opened, print_json


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("explain", help=say("cli.explain"))
    parser.add_argument("log", metavar="LOG", help=say("cli.text_file"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.log) as (shown, file):
        explanation = explain(file, shown, Config.from_environment().limits.upload_bytes)
    print_json(explanation_document(explanation)) if arguments.json else _print(explanation)
    return 0


def _print(explanation: Explanation) -> None:
    print(say_message(explanation.sentence))
    if explanation.evidence:
        print(say("explain.lines", numbers=", ".join(map(str, explanation.evidence))))
    if explanation.remedy is not None:
        print(say_message(explanation.remedy.advice))
        for change in explanation.remedy.changes:
            print(f"  - {say_message(change_label(change))}")
    if explanation.unread_bytes:
        print(say("explain.unread", mib=explanation.unread_bytes / 2**20))
