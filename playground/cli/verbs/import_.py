"""The command line's `import`: a run or sweep that was saved as JSON, or results of another tool."""

from __future__ import annotations

import argparse
from pathlib import Path

from playground.config import Config
from playground.i18n import say
from playground.store import History
from playground.store.transfer import import_file, text_of_file


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its argument."""
    parser = verbs.add_parser("import", help=say("cli.import"))
    parser.add_argument("file", type=Path)
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    file: Path = arguments.file
    text = text_of_file(file, str(file))
    for saved_id in import_file(History(Config.from_environment().db), text, str(file)):
        print(saved_id)
    return 0
