"""The command line's `preflight`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from playground.config import Config
from playground.domain.fit.memory import GIB
from playground.i18n import say
from playground.report import preflight as report
from playground.report.documents.preflight import preflight_document
from playground.runs.host import Host
from playground.runs.sides import preflight

from ..preset import preset_of
from ..streams import print_json


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
    print_json(preflight_document(checks)) if arguments.json else _print(checks)
    return 0


def _print(checks: Sequence[preflight.SideCheck]) -> None:
    for check in checks:
        print(f"== {check.label} == {report.headline(check)}")
        if check.need is not None:
            sizes = report.parts(check.need)
            print(
                "  ".join(say("preflight.part", name=say(f"preflight.{n}"), gib=b / GIB) for n, b in sizes.items())
            )
        for line in (*report.memory_lines(check), *report.reasons(check)):
            print(line)
    print(say("preflight.estimate"))
