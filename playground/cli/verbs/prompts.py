"""The command line's `prompts`: what a prompts file says, as a run would send it."""

from __future__ import annotations

import argparse

from playground import prompts
from playground.config import Config
from playground.domain.record.prompts import PromptsRead
from playground.i18n import say, say_message
from playground.report.documents.prompts import first_texts, prompts_document

from ..streams import print_json, refusal


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("prompts", help=say("cli.prompts_verb"))
    parser.add_argument("file", metavar="FILE", help=say("cli.prompts"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with refusal(prompts_document, arguments):
        chosen = prompts.load_set(arguments.file, Config.from_environment().limits)
    read = chosen.read or PromptsRead(len(chosen.prompts), len(chosen.prompts), 0)
    if arguments.json:
        print_json(prompts_document(read, chosen.prompts))
        return 0
    print(say("prompts.read", count=read.read))
    for remark in read.remarks:
        print("-", say_message(remark))
    for text in first_texts(chosen.prompts):
        print("  " + " ".join(text.split()))
    return 0
