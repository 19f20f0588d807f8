"""The command line's `import`: a run or sweep that was exported as JSON, here or on another host."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from playground.config import Config
from playground.domain.errors import InvalidInput, WorkFailed
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import say
from playground.store import History, readable
from playground.store.transfer import loaded


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its argument."""
    parser = verbs.add_parser("import", help=say("cli.import"))
    parser.add_argument("file", type=Path)
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    record = _read(arguments.file)
    history = History(Config.from_environment().db)
    if history.settings(record.id) is not None:
        raise InvalidInput("import.there", id=record.id)
    runs = [point.run for point in record.points] if isinstance(record, Sweep) else [record]
    for part in runs:
        if part is not None and history.settings(part.id) is None:
            history.finish(part)
    if isinstance(record, Sweep):
        history.finish_sweep(record)
    print(record.id)
    return 0


def _read(file: Path) -> Run | Sweep:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("import.no_file", file=str(file), detail=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("import.not_ours", file=str(file), detail=str(error)[:200]) from error
    values = document.get("record") if isinstance(document, dict) else None
    if not isinstance(values, dict):
        raise InvalidInput("import.no_record", file=str(file))
    try:
        with readable(file.name):
            record = loaded(values)
            if not re.fullmatch(r"[\w.-]{1,100}", record.id) or record.status == "running":
                raise ValueError(f"{record.id[:100]!r}, {record.status}")
    except WorkFailed as error:
        raise InvalidInput("import.not_ours", file=str(file), detail=error.params["detail"]) from error
    return record
