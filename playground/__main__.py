"""The command line: the page's verbs without a browser.

With --json one JSON document goes to standard output and nothing else; logs go to standard error. Exit code 0:
done, 1: the work failed, 2: bad input.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import logging
import os
import signal
import sys
from typing import Any

from . import attached, doctor, presets
from .compare import Comparison
from .config import Config
from .domain.errors import InvalidInput, PlaygroundError, WorkFailed
from .domain.metrics import Distribution, trace_figures
from .domain.records import Run
from .domain.workload import ConcurrencyProfile, Workload
from .facts import facts
from .host import Host
from .load.endpoint import Endpoint
from .report import compare_document, load_document, summary_document
from .store import History
from .text import say, say_problem


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        return int(arguments.verb(arguments))
    except PlaygroundError as error:
        print(say_problem(error), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m playground", description=say("cli.what"))
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    compare = verbs.add_parser("compare", help=say("cli.compare"))
    compare.add_argument("preset", help=say("cli.preset"))
    compare.add_argument("--prompt", help=say("cli.prompt"))
    compare.add_argument("--mode", choices=["race"], default="race", help=say("cli.mode"))
    compare.add_argument("--json", action="store_true", help=say("cli.json"))
    compare.set_defaults(verb=_compare)

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

    health = verbs.add_parser("doctor", help=say("cli.doctor"))
    health.add_argument("--json", action="store_true", help=say("cli.json"))
    health.set_defaults(verb=_doctor)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _compare(arguments: argparse.Namespace) -> int:
    preset = presets.load(arguments.preset)
    workload = preset.workload
    if arguments.prompt is not None:
        given = {**workload.model_dump(), "prompt": arguments.prompt}
        workload = presets.validate(type(workload), given, where="--prompt")
    run = asyncio.run(_run_comparison(preset, workload, quiet=arguments.json))
    _print_json(compare_document(run)) if arguments.json else _print_run(run)
    return 0 if run.status in ("done", "stopped") else 1


async def _run_comparison(preset: presets.Preset, workload: Workload, quiet: bool) -> Run:
    host = Host(Config.from_environment())
    host.open()
    try:
        comparison = host.from_preset(preset, workload)
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, comparison.stop)
        await host.start(comparison, where=say("host.command_line"))
        await _follow(comparison, quiet)
        if comparison.run.problem is not None:
            print(say_problem(comparison.run.problem), file=sys.stderr)
            for side in comparison.run.sides:
                print("\n".join(side.log_tail), file=sys.stderr)
        return comparison.run
    finally:
        await host.close()


async def _follow(comparison: Comparison, quiet: bool) -> None:
    """Say each new stage once, on standard error."""
    said: list[str] = [""] * len(comparison.progress)
    while not comparison.finished:
        for index, progress in enumerate(comparison.progress):
            if progress.stage != said[index] and not quiet:
                said[index] = progress.stage
                label = comparison.run.sides[index].label
                print(f"{label}: {say(f'stage.{progress.stage}')}", file=sys.stderr)
        await asyncio.sleep(0.1)


def _print_run(run: Run) -> None:
    print(f"{run.id}  {run.created_at}  {say(f'race.{run.status}')}  {run.preset or ''}")
    for turn in run.workload.conversation:
        print(f"{turn.role}: {turn.content}")
    for side in run.sides:
        print(f"\n== {side.label} ({side.placement or '-'}) ==\n{side.command}")
        for trace in side.requests:
            print(trace.output_text)
            if trace.problem:
                print(say_problem(trace.problem))
        print("  ".join(f"{name} {value}" for name, value, _ in facts(side)))
    if run.problem is not None:
        print("\n" + say_problem(run.problem))
    elif any(side.contended for side in run.sides):
        print("\n" + say("race.contended"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _load(arguments: argparse.Namespace) -> int:
    key = os.environ.get("OPENAI_API_KEY")
    endpoint = Endpoint.from_url(arguments.base_url, arguments.model, api=arguments.api, key=key)
    asked = attached.prompts_for(arguments.prompt, arguments.prompts)
    sampling = attached.sampling_for(arguments.output_tokens)
    requests = arguments.requests or max(8, 2 * arguments.concurrency)
    profile = presets.validate(
        ConcurrencyProfile, {"concurrency": arguments.concurrency, "requests": requests}, where="--concurrency"
    )
    limit_s = Config.from_environment().request_timeout_s
    driven = asyncio.run(attached.drive(endpoint, asked, sampling, profile, limit_s))
    _print_json(load_document(driven)) if arguments.json else _print_load(driven)
    if not driven.answered:
        problem = driven.traces[-1].problem
        raise WorkFailed("load.none_answered", cause=problem)
    return 0


def _print_load(driven: attached.Driven) -> None:
    figures = trace_figures(driven.traces)
    print(f"{driven.endpoint.url}  {driven.endpoint.model}  {figures.requests} requests")
    rows: dict[str, Distribution | None] = {
        "TTFT ms": figures.ttft_ms,
        "TPOT ms": figures.tpot_ms,
        "ITL ms": figures.itl_ms,
        "chunk gap ms": figures.chunk_gap_ms,
        "E2EL ms": figures.e2el_ms,
    }
    print(f"{'':<16}" + "".join(f"{name:>10}" for name in ("mean", "p50", "p90", "p95", "p99")))
    for name, found in rows.items():
        values = [None] * 5 if found is None else [found.mean, found.p50, found.p90, found.p95, found.p99]
        print(f"{name:<16}" + "".join(f"{_number(value):>10}" for value in values))
    facts = {
        "output tokens": figures.output_tokens,
        "output tokens/s": figures.output_tokens_per_s,
        "requests/s": figures.requests_per_s,
        "wall s": driven.wall_s,
        "client CPU s": driven.client_cpu_s,
    }
    print("  ".join(f"{name} {_number(value)}" for name, value in facts.items()))
    problems = {trace.problem.message_id: trace.problem for trace in driven.traces if trace.problem}
    for message_id, count in figures.errors.items():
        print(f"{count} x {say_problem(problems[message_id])}")


def _history() -> History:
    return History(Config.from_environment().db)


def _history_list(arguments: argparse.Namespace) -> int:
    found = _history().summaries()
    if arguments.json:
        _print_json([summary_document(summary) for summary in found])
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
    run = _found(arguments.id)
    _print_json(compare_document(run)) if arguments.json else _print_run(run)
    return 0


def _history_export(arguments: argparse.Namespace) -> int:
    run = _found(arguments.id)
    if arguments.format == "json":
        _print_json(compare_document(run))
    elif arguments.format == "csv":
        print(_csv(run), end="")
    else:
        from .charts import html_report

        print(html_report(run))
    return 0


def _csv(run: Run) -> str:
    """One line a chunk: the raw timings, from which every figure follows."""
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(["run_id", "side", "request", "sent_ms", "chunk", "ms_since_send", "tokens", "text"])
    for side in run.sides:
        for number, trace in enumerate(side.requests):
            for index, chunk in enumerate(trace.chunks):
                writer.writerow(
                    [run.id, side.label, number, trace.sent_ms, index, chunk.ms, chunk.tokens, chunk.text]
                )
    return output.getvalue()


def _doctor(arguments: argparse.Namespace) -> int:
    checks = doctor.examine(Config.from_environment())
    if arguments.json:
        _print_json([check.as_document() for check in checks])
    else:
        for check in checks:
            print(f"[{say(f'doctor.{check.state}')}] {say_problem(check.finding)}")
    if any(check.state == "broken" for check in checks):
        raise WorkFailed("doctor.not_ready")
    return 0


def _print_json(document: Any) -> None:
    print(json.dumps(document, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    sys.exit(main())
