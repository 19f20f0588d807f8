"""The command line's `compare`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.domain.spec.case import Case
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.workload import Workload
from playground.domain.stats.rounds import whole_rounds
from playground.domain.validation import validate
from playground.engine import devices
from playground.i18n import say, say_message
from playground.processes import LINE_LIMIT
from playground.report import expected
from playground.report.documents.comparison import compare_document
from playground.report.documents.side_by_side import side_by_side_document
from playground.report.exports.files import exported
from playground.report.side_by_side import SideBySide
from playground.runs.comparison import Comparison
from playground.runs.expected import Expected
from playground.runs.host import Host
from playground.runs.sides.off_same_path import off_same_path

from ..console import print_run, print_side_by_side, round_lines
from ..preset import preset_of
from ..streams import opened, print_json


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("compare", help=say("cli.compare"))
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("preset", nargs="?", help=say("cli.preset"))
    what.add_argument("--from-run", metavar="ID", help=say("cli.from_run"))
    what.add_argument("--case", metavar="FILE", help=say("cli.case"))
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", help=say("cli.prompt"))
    prompts.add_argument("--prompts", metavar="FILE", help=say("cli.prompts"))
    parser.add_argument("--mode", choices=["race", "measured"], default="race", help=say("cli.mode"))
    parser.add_argument("--same-path", action="store_true", help=say("cli.same_path"))
    parser.add_argument("--plan", action="store_true", help=say("cli.plan"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    config = Config.from_environment()
    if arguments.from_run is not None:
        return _repeat(config, arguments)
    if arguments.case is not None:
        return _for_another(config, arguments)
    preset = preset_of(arguments.preset, config.limits)
    workload, measurement = preset.workload, preset.measurement if arguments.mode == "measured" else None
    if arguments.prompt is not None:
        values = {**workload.model_dump(), "prompt": arguments.prompt}
        workload = validate(Workload, values, where="--prompt")
    if measurement is None and arguments.prompts is not None:
        raise InvalidInput("cli.prompts_need_measured")
    if measurement is not None and (arguments.prompt or arguments.prompts):
        # A single prompt is sent again and again.
        measurement = measurement.model_copy(update={"prompts": arguments.prompts})
    host = Host(config)
    sides = preset.sides
    if arguments.same_path:
        sides = (*sides, off_same_path(config, sides))
    case = Case(sides=sides, workload=workload, measurement=measurement or preset.measurement)
    # Checked first, so that invalid input does not even create a database.
    # With another side it is no longer what the preset, and its claim, is about.
    name = None if arguments.same_path else preset.name
    comparison = host.comparison(sides, workload, measurement, name)
    if arguments.plan:
        _show_plan(host.expected(case), comparison, as_json=arguments.json)
        return 0
    if not arguments.json:
        _print_plan(host.expected(case), comparison, sys.stderr)
    record = asyncio.run(_run_comparison(host, comparison, quiet=arguments.json))
    print_json(compare_document(record)) if arguments.json else print_run(record)
    return 0 if record.status in ("done", "stopped") else 1


def _for_another(config: Config, arguments: argparse.Namespace) -> int:
    """Measure one case for whoever keeps the history, and print all that it would keep."""
    # Several may run on one machine, and share a home with whoever sent them.
    with opened(arguments.case) as (name, file), tempfile.TemporaryDirectory(prefix="pg") as folder:
        try:
            values = json.loads(file.readline(LINE_LIMIT))
        except ValueError as error:
            raise InvalidInput("text.no_text", file=name, line=1) from error
        case = validate(Case, values, where=name)
        host = Host(replace(config, state=Path(folder) / "state", db=Path(folder) / "history.db"))
        comparison = host.comparison(case.sides, case.workload, case.measurement)
        lifeline = file.fileno() if name == "-" else None
        record = asyncio.run(_run_comparison(host, comparison, quiet=arguments.json, lifeline=lifeline))
    record.machine = record.machine and {**record.machine, **devices.identity()}
    text = exported(record, "json")
    print(text, end="") if arguments.json else print_run(record)
    return 0 if record.status in ("done", "stopped") else 1


def _stop_with(lifeline: int, stop: Callable[[], None]) -> None:
    """Stop once this file ends: whoever sent the case is gone, or has asked for it."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        while os.read(lifeline, 4096):
            pass
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop)

    threading.Thread(target=wait, daemon=True).start()


def _show_plan(expectation: Expected, comparison: Comparison, *, as_json: bool) -> None:
    print_json(expected.document(expectation)) if as_json else _print_plan(expectation, comparison)


def _print_plan(expectation: Expected, comparison: Comparison, file: TextIO | None = None) -> None:
    print(say_message(expected.start_sentence(expectation)), file=file)
    if comparison.run.measurement is not None:
        print(say_message(expected.measured_sentence(expectation)), file=file)


def _repeat(config: Config, arguments: argparse.Namespace) -> int:
    """Run again what an earlier run did, with its settings, prompts and seed, and put both beside each other."""
    if arguments.prompt is not None or arguments.prompts is not None or arguments.same_path:
        raise InvalidInput("cli.from_run_alone")
    host = Host(config)
    earlier = host.history.get(arguments.from_run)
    if earlier is None:
        raise InvalidInput("history.no_such_run", id=arguments.from_run)
    comparison = host.repetition(earlier)
    if arguments.plan:
        case = Case(
            sides=earlier.settings, workload=earlier.workload, measurement=earlier.measurement or Measurement()
        )
        _show_plan(host.expected(case), comparison, as_json=arguments.json)
        return 0
    record = asyncio.run(_run_comparison(host, comparison, quiet=arguments.json))
    beside = SideBySide.of([earlier, record])
    print_json(side_by_side_document(beside)) if arguments.json else print_side_by_side(beside)
    return 0 if record.status in ("done", "stopped") else 1


async def _run_comparison(host: Host, comparison: Comparison, quiet: bool, *, lifeline: int | None = None) -> Run:
    host.tidy_up()
    host.open()
    try:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, comparison.stop)
        if lifeline is not None:
            _stop_with(lifeline, comparison.stop)
        await host.start(comparison, where=say("host.command_line"))
        await _follow(comparison, quiet)
        if comparison.run.problem is not None:
            print(say_message(comparison.run.problem), file=sys.stderr)
            for side in comparison.run.sides:
                print("\n".join(side.log_tail), file=sys.stderr)
        return comparison.run
    finally:
        await host.close()


async def _follow(comparison: Comparison, quiet: bool) -> None:
    """Print each new stage and each round once, on standard error."""
    live = comparison.live
    stages, rounds = [""] * len(live.progress), 0
    while not comparison.finished:
        for index, progress in enumerate(live.progress):
            if progress.stage != stages[index] and not quiet:
                stages[index] = progress.stage
                label = live.run.sides[index].label
                print(f"{label}: {say(f'stage.{progress.stage}')}", file=sys.stderr)
        if not quiet and live.run.measurement is not None and whole_rounds(live.run) > rounds:
            for line in round_lines(live.run)[rounds:]:
                rounds += 1
                print(line, file=sys.stderr)
        await asyncio.sleep(0.1)
