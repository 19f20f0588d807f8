"""The command line's `load`: drives an endpoint that already runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from playground.config import Config
from playground.domain.errors import WorkFailed
from playground.domain.record.metrics import trace_figures
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.validation import validate
from playground.i18n import say, say_message
from playground.load.endpoint import Endpoint
from playground.report.documents.others import load_document
from playground.report.findings import unstreamed
from playground.report.tables import errors
from playground.runs import load_test

from ..console import number, print_figures, print_lines
from ..streams import print_json


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("load", help=say("cli.load"))
    parser.add_argument("--base-url", required=True, help=say("cli.base_url"))
    parser.add_argument("--model", required=True, help=say("cli.model"))
    parser.add_argument("--api", choices=["chat", "completions"], default="chat", help=say("cli.api"))
    parser.add_argument("--concurrency", type=_positive, default=1, help=say("cli.concurrency"))
    parser.add_argument("--requests", type=_positive, help=say("cli.requests"))
    parser.add_argument("--output-tokens", type=_positive, help=say("cli.output_tokens"))
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument("--prompt", help=say("cli.load_prompt"))
    prompts.add_argument("--prompts", metavar="FILE", help=say("cli.prompts"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(say("cli.not_positive", value=text))
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    config, key = Config.from_environment(), os.environ.get("OPENAI_API_KEY")
    endpoint = Endpoint.attached(config, arguments.base_url, arguments.model, arguments.api, key)
    prompts = load_test.prompts_for(arguments.prompt, arguments.prompts, config.limits)
    for remark in prompts.read.remarks if prompts.read is not None else ():
        print(say_message(remark), file=sys.stderr)
    sampling = load_test.sampling_for(arguments.output_tokens)
    requests = arguments.requests or max(8, 2 * arguments.concurrency)
    profile = validate(
        ConcurrencyProfile, {"concurrency": arguments.concurrency, "requests": requests}, where="--concurrency"
    )
    test = asyncio.run(load_test.drive(endpoint, prompts.prompts, sampling, profile, config))
    print_json(load_document(test)) if arguments.json else _print(test)
    if not test.answered:
        problem = test.traces[-1].problem
        raise WorkFailed("load.none_answered", cause=problem)
    return 0


def _print(test: load_test.LoadTest) -> None:
    print(f"{test.endpoint.url}  {test.endpoint.model}")
    print_figures(trace_figures(test.traces))
    print(f"wall s {number(test.wall_s)}  client CPU s {number(test.client_cpu_s)}")
    print_lines(errors(test.traces))
    if unstreamed(test.traces):
        print(say("finding.not_streamed_means"))
