"""The command line's `import`: a run or sweep that was saved as JSON, or results of another tool."""

from __future__ import annotations

import argparse
from pathlib import Path

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.i18n import say
from playground.store import History
from playground.store.transfer import import_file


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its argument."""
    parser = verbs.add_parser("import", help=say("cli.import"))
    parser.add_argument("file", type=Path)
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    file: Path = arguments.file
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput("import.no_file", file=str(file), detail=error.strerror or str(error)) from error
    except ValueError as error:
        raise InvalidInput("import.not_ours", file=str(file), detail=str(error)[:200]) from error
    for saved_id in import_file(History(Config.from_environment().db), text, str(file)):
        print(saved_id)
    return 0
