"""The command line's `sweep`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.budget import Estimate
from playground.domain.sweep.knob_text import parsed_knob
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import Sweep
from playground.domain.validation import validate
from playground.i18n import say, say_message
from playground.report.deploy import snippets
from playground.report.sweep import conclusions_of, plan_document, plan_sentences, sweep_document
from playground.report.sweep.table import point_line
from playground.runs.elsewhere.command import CommandPlace
from playground.runs.elsewhere.place import Place
from playground.runs.host import Host
from playground.runs.sweep import SweepRun, new_sweep
from playground.workers import FORMS

from ..console import UNITS
from ..preset import preset_of
from ..streams import print_json

DEFAULT_MINUTES = 60.0


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    sweep = verbs.add_parser("sweep", help=say("cli.sweep"))
    sweep.add_argument("preset", nargs="?", help=say("cli.preset"))
    sweep.add_argument("--knob", action="append", metavar="[SIDE.]NAME=VALUES", help=say("cli.knob"))
    sweep.add_argument("--search", action="store_true", help=say("cli.search"))
    sweep.add_argument("--prompts", metavar="FILE", help=say("cli.prompts"))
    sweep.add_argument("--minutes", type=_minutes, help=say("cli.minutes"))
    earlier = sweep.add_mutually_exclusive_group()
    earlier.add_argument("--resume", metavar="ID", help=say("cli.resume"))
    earlier.add_argument("--schedule", metavar="ID", help=say("cli.schedule"))
    sweep.add_argument("--plan", action="store_true", help=say("cli.plan"))
    sweep.add_argument(
        "--on", nargs=2, action="append", default=[], metavar=("command", "TEMPLATE"), help=say("cli.on")
    )
    sweep.add_argument("--json", action="store_true", help=say("cli.json"))
    sweep.set_defaults(verb=run)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 7 * 1440:
        raise argparse.ArgumentTypeError(say("cli.bad_minutes", value=text))
    return minutes


def run(arguments: argparse.Namespace) -> int:
    host = Host(Config.from_environment())
    places = _places(arguments)
    sweep = _sweep(host, arguments)
    if arguments.plan:
        # A sweep that can't run has no plan.
        host.sweep_run(sweep, places)
        estimate = host.estimate(sweep)
        print_json(plan_document(estimate)) if arguments.json else _print_plan(estimate)
        return 0
    asyncio.run(_measured(host, sweep, places, quiet=arguments.json))
    show(host.config, sweep, as_json=arguments.json)
    return 0 if sweep.status in ("done", "stopped") else 1


def _places(arguments: argparse.Namespace) -> list[Place]:
    """Where to measure; none: here."""
    places = list[Place]()
    for kind, template in arguments.on:
        if kind != "command":
            raise InvalidInput("elsewhere.unknown", kind=kind)
        places.append(CommandPlace(template))
    return places


def show(config: Config, sweep: Sweep, *, as_json: bool) -> None:
    """Print the sweep's results."""
    analysis = SweepAnalysis.of(sweep)
    if as_json:
        print_json(sweep_document(analysis))
        return
    _print_sweep(analysis)
    side = analysis.recommended_side
    if side is not None and isinstance(side.settings, EngineSettings):
        print(snippets(config, side.settings, side.runtime_version, side.device)["serve"])


def _sweep(host: Host, arguments: argparse.Namespace) -> Sweep:
    if arguments.resume:
        return _resumed(host, arguments)
    if arguments.schedule:
        return _scheduled(host, arguments)
    if arguments.preset is None:
        raise InvalidInput("cli.sweep_of_what")
    preset = preset_of(arguments.preset, host.config.limits)
    plan = preset.sweep
    if arguments.knob:
        knobs = tuple(parsed_knob(text) for text in arguments.knob)
        budget_s = plan.budget_s if plan else DEFAULT_MINUTES * 60
        values = {"knobs": knobs, "budget_s": budget_s, "search": arguments.search}
        plan = validate(SweepPlan, values, where="--knob")
    if plan is None:
        raise InvalidInput("sweep.no_knobs", preset=preset.name)
    if arguments.search:
        plan = plan.model_copy(update={"search": True})
    if arguments.minutes:
        plan = plan.model_copy(update={"budget_s": arguments.minutes * 60})
    case = preset.case
    if arguments.prompts:
        measurement = {**case.measurement.model_dump(), "prompts": arguments.prompts}
        case = case.model_copy(update={"measurement": validate(Measurement, measurement, where="--prompts")})
    return new_sweep(plan, case, preset.name)


def _earlier(host: Host, sweep_id: str, arguments: argparse.Namespace) -> Sweep:
    """A sweep of the history, whose own settings count."""
    sweep = host.history.sweep(sweep_id)
    if sweep is None:
        raise InvalidInput("sweep.no_such_sweep", id=sweep_id)
    if arguments.preset or arguments.knob or arguments.prompts or arguments.search:
        raise InvalidInput("cli.resume_alone", option="--resume" if arguments.resume else "--schedule")
    return sweep


def _resumed(host: Host, arguments: argparse.Namespace) -> Sweep:
    sweep = _earlier(host, arguments.resume, arguments)
    if not sweep.remaining:
        raise InvalidInput("sweep.none_to_go", id=sweep.id)
    if arguments.minutes:
        sweep.plan = sweep.plan.model_copy(update={"budget_s": arguments.minutes * 60})
    return sweep


def _scheduled(host: Host, arguments: argparse.Namespace) -> Sweep:
    """What measures the schedule that a sweep of the history proposes."""
    plan, case = SweepAnalysis.of(_earlier(host, arguments.schedule, arguments)).schedule_measurement()
    if arguments.minutes:
        plan = plan.model_copy(update={"budget_s": arguments.minutes * 60})
    return new_sweep(plan, case)


def _print_plan(estimate: Estimate) -> None:
    for sentence in plan_sentences(estimate):
        print(say_message(sentence))


async def _measured(host: Host, sweep: Sweep, places: Sequence[Place], quiet: bool) -> None:
    host.tidy_up()
    host.open()
    try:
        sweep_run = await FORMS.run(host.sweep_run, sweep, places)
        if not quiet:
            for sentence in plan_sentences(await FORMS.run(host.estimate, sweep)):
                print(say_message(sentence), file=sys.stderr)
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, sweep_run.stop)
        await host.start(sweep_run, where=say("host.command_line"))
        await _follow(sweep_run, quiet)
        if sweep.problem is not None:
            print(say_message(sweep.problem), file=sys.stderr)
    finally:
        await host.close()


async def _follow(sweep_run: SweepRun, quiet: bool) -> None:
    """Print each point's result on standard error once it has settled."""
    sweep, unit = sweep_run.sweep, UNITS[sweep_run.sweep.case.workload.objective]
    reported = {point.run.id for point in sweep.points if point.settled and point.run}
    while not sweep_run.finished:
        for point in sweep.points if not quiet else ():
            if point.settled and point.run and point.run.id not in reported:
                reported.add(point.run.id)
                line = point_line(sweep, point.result(), unit)
                print(f"[{len(reported)}/{sweep.plan.most_points}] {line}", file=sys.stderr)
        await asyncio.sleep(0.5)


def _print_sweep(analysis: SweepAnalysis) -> None:
    """Print a line for each point, then the conclusions."""
    sweep = analysis.sweep
    print(f"{sweep.id}  {sweep.created_at}  {say(f'race.{sweep.status}')}  {sweep.preset or ''}  {sweep.title}")
    for point in analysis.listed:
        print(point_line(sweep, point, UNITS[sweep.case.workload.objective]))
        for side in point.sides:
            if (prediction := analysis.predictions.get((point.number, side.label))) is not None:
                print(f"    {side.label}: {say_message(prediction.statement())}")
    for sentence in conclusions_of(analysis):
        print(say_message(sentence))
