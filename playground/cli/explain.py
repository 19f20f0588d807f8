"""The command line's `explain`."""

from __future__ import annotations

import argparse

from playground.config import Config
from playground.engine.failures.explanation import explain
from playground.i18n import say
from playground.report.documents import explanation_document

from .console import print_explanation, print_json
from .text_input import opened


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("explain", help=say("cli.explain"))
    parser.add_argument("log", metavar="LOG", help=say("cli.text_file"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.log) as (shown, file):
        explanation = explain(file, shown, Config.from_environment().limits.upload_bytes)
    print_json(explanation_document(explanation)) if arguments.json else print_explanation(explanation)
    return 0
