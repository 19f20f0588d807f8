"""The command line: the page's verbs without a browser.

With --json one JSON document goes to standard output and nothing else; logs go to standard error. Exit code 0:
done, 1: the work failed, 2: bad input.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError, WorkFailed
from playground.domain.record.run import Run
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.workload import Workload
from playground.domain.stats.rounds import whole_rounds
from playground.domain.validation import validate
from playground.i18n import say, say_message
from playground.load.endpoint import Endpoint
from playground.report.documents import compare_document, load_document, preflight_document, summary_document
from playground.runs import load_test, preflight
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.store import History

from . import doctor
from . import sweep as sweep_cli
from .console import print_json, print_load, print_preflight, print_run, round_lines


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        return int(arguments.verb(arguments))
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m playground", description=say("cli.what"))
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    compare = verbs.add_parser("compare", help=say("cli.compare"))
    compare.add_argument("preset", help=say("cli.preset"))
    asked = compare.add_mutually_exclusive_group()
    asked.add_argument("--prompt", help=say("cli.prompt"))
    asked.add_argument("--prompts", metavar="FILE", help=say("cli.prompts"))
    compare.add_argument("--mode", choices=["race", "measured"], default="race", help=say("cli.mode"))
    compare.add_argument("--json", action="store_true", help=say("cli.json"))
    compare.set_defaults(verb=_compare)

    sweep_cli.add_to(verbs)

    load = verbs.add_parser("load", help=say("cli.load"))
    load.add_argument("--base-url", required=True, help=say("cli.base_url"))
    load.add_argument("--model", required=True, help=say("cli.model"))
    load.add_argument("--api", choices=["chat", "completions"], default="chat", help=say("cli.api"))
    load.add_argument("--concurrency", type=_positive, default=1, help=say("cli.concurrency"))
    load.add_argument("--requests", type=_positive, help=say("cli.requests"))
    load.add_argument("--output-tokens", type=_positive, help=say("cli.output_tokens"))
    asked = load.add_mutually_exclusive_group()
    asked.add_argument("--prompt", help=say("cli.load_prompt"))
    asked.add_argument("--prompts", metavar="FILE", help=say("cli.prompts"))
    load.add_argument("--json", action="store_true", help=say("cli.json"))
    load.set_defaults(verb=_load)

    history = verbs.add_parser("history", help=say("cli.history"))
    actions = history.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help=say("cli.history_list"))
    listing.add_argument("--json", action="store_true", help=say("cli.json"))
    listing.set_defaults(verb=_history_list)
    show = actions.add_parser("show", help=say("cli.history_show"))
    show.add_argument("id")
    show.add_argument("--json", action="store_true", help=say("cli.json"))
    show.set_defaults(verb=_history_show)
    export = actions.add_parser("export", help=say("cli.history_export"))
    export.add_argument("id")
    export.add_argument("--format", choices=["json", "csv", "html"], default="json")
    export.set_defaults(verb=_history_export)

    before = verbs.add_parser("preflight", help=say("cli.preflight"))
    before.add_argument("preset", help=say("cli.preset"))
    before.add_argument("--json", action="store_true", help=say("cli.json"))
    before.set_defaults(verb=_preflight)

    health = verbs.add_parser("doctor", help=say("cli.doctor"))
    health.add_argument("--json", action="store_true", help=say("cli.json"))
    health.set_defaults(verb=_doctor)
    return parser


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(say("cli.not_positive", value=text))
    return int(text)


def _compare(arguments: argparse.Namespace) -> int:
    preset = sweep_cli.preset_of(arguments.preset)
    workload, measurement = preset.workload, preset.measurement if arguments.mode == "measured" else None
    if arguments.prompt is not None:
        given = {**workload.model_dump(), "prompt": arguments.prompt}
        workload = validate(Workload, given, where="--prompt")
    if measurement is None and arguments.prompts is not None:
        raise InvalidInput("cli.prompts_need_measured")
    if measurement is not None and (arguments.prompt or arguments.prompts):
        # One prompt given: that one, again and again.
        measurement = measurement.model_copy(update={"prompts": arguments.prompts})
    run = asyncio.run(_run_comparison(preset, workload, measurement, quiet=arguments.json))
    print_json(compare_document(run)) if arguments.json else print_run(run)
    return 0 if run.status in ("done", "stopped") else 1


async def _run_comparison(
    preset: presets.Preset, workload: Workload, measurement: Measurement | None, quiet: bool
) -> Run:
    host = Host(Config.from_environment())
    # Checked first: for what can't be, not even a database is made.
    comparison = host.comparison(preset.sides, workload, measurement, preset.name)
    host.open()
    try:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, comparison.stop)
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
    """Say each new stage and each round once, on standard error."""
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


def _load(arguments: argparse.Namespace) -> int:
    config, key = Config.from_environment(), os.environ.get("OPENAI_API_KEY")
    endpoint = Endpoint.attached(config, arguments.base_url, arguments.model, arguments.api, key)
    asked = load_test.prompts_for(arguments.prompt, arguments.prompts)
    sampling = load_test.sampling_for(arguments.output_tokens)
    requests = arguments.requests or max(8, 2 * arguments.concurrency)
    profile = validate(
        ConcurrencyProfile, {"concurrency": arguments.concurrency, "requests": requests}, where="--concurrency"
    )
    driven = asyncio.run(load_test.drive(endpoint, asked, sampling, profile, config.request_timeout_s))
    print_json(load_document(driven)) if arguments.json else print_load(driven)
    if not driven.answered:
        problem = driven.traces[-1].problem
        raise WorkFailed("load.none_answered", cause=problem)
    return 0


def _history() -> History:
    return History(Config.from_environment().db)


def _history_list(arguments: argparse.Namespace) -> int:
    found = _history().summaries()
    if arguments.json:
        print_json([summary_document(summary) for summary in found])
        return 0
    for item in found:
        sides = " | ".join(item.labels)
        prompt = " ".join(item.prompt.split())[:60]
        print(f"{item.id}  {item.created_at}  {item.status:<11}  {item.preset or '-':<24}  {sides}  {prompt}")
    return 0


def _found(run_id: str) -> Run:
    run = _history().get(run_id)
    if run is None:
        raise InvalidInput("history.no_such_run", id=run_id)
    return run


def _history_show(arguments: argparse.Namespace) -> int:
    if (sweep := _history().sweep(arguments.id)) is not None:
        sweep_cli.show(Config.from_environment(), sweep, as_json=arguments.json)
        return 0
    run = _found(arguments.id)
    print_json(compare_document(run)) if arguments.json else print_run(run)
    return 0


def _history_export(arguments: argparse.Namespace) -> int:
    # It draws charts: what other verbs need not wait for.
    from playground.report.export import exported

    kept = _history().sweep(arguments.id) or _found(arguments.id)
    print(exported(kept, arguments.format), end="")
    return 0


def _preflight(arguments: argparse.Namespace) -> int:
    config, preset = Config.from_environment(), sweep_cli.preset_of(arguments.preset)
    # The same checks as before a run.
    run = Host(config).comparison(preset.sides, preset.workload, preset=preset.name).run
    checks = preflight.examine(config, run)
    print_json(preflight_document(checks)) if arguments.json else print_preflight(checks)
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    checks = doctor.examine(Config.from_environment())
    if arguments.json:
        print_json([check.as_document() for check in checks])
    else:
        for check in checks:
            print(f"[{say(f'doctor.{check.state}')}] {say_message(check.finding)}")
    if any(check.state == "broken" for check in checks):
        raise WorkFailed("doctor.not_ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
