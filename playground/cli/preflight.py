"""The command line's `preflight`."""

from __future__ import annotations

import argparse

from playground.config import Config
from playground.i18n import say
from playground.report.documents import preflight_document
from playground.runs.host import Host
from playground.runs.sides import preflight

from .console import print_json, print_preflight
from .preset import preset_of


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("preflight", help=say("cli.preflight"))
    parser.add_argument("preset", help=say("cli.preset"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    config = Config.from_environment()
    preset = preset_of(arguments.preset, config.limits)
    # The same checks as before a run.
    record = Host(config).comparison(preset.sides, preset.workload, preset=preset.name).run
    checks = preflight.examine(config, record)
    print_json(preflight_document(checks)) if arguments.json else print_preflight(checks)
    return 0
