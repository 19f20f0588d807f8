"""The command line's `explain`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.engine.failures.explanation import Explanation, explain
from playground.i18n import say
from playground.report.documents import explanation_document

from .console import print_explanation, print_json


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("explain", help=say("cli.explain"))
    parser.add_argument("log", metavar="LOG", help=say("cli.explain_log"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    explanation = _explained(arguments.log, Config.from_environment().limits.upload_bytes)
    print_json(explanation_document(explanation)) if arguments.json else print_explanation(explanation)
    return 0


def _explained(name: str, most_bytes: int) -> Explanation:
    if name == "-":
        return explain(sys.stdin.buffer, say("explain.standard_input"), most_bytes)
    try:
        with Path(name).open("rb") as file:
            return explain(file, name, most_bytes)
    except (OSError, ValueError) as error:
        raise InvalidInput("explain.no_file", where=name, detail=str(error)) from error
