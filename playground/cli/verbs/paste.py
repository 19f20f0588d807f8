"""The command line's `paste`: what a command line, a script or a file for vLLM says."""

from __future__ import annotations

import argparse
import json

from playground.domain.vllm_cli import paste
from playground.i18n import say, say_message
from playground.report.documents.paste import paste_document

from ..streams import print_json, refusal, text_of


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("paste", help=say("cli.paste"))
    parser.add_argument("file", metavar="FILE", help=say("cli.text_file"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with refusal(paste_document, arguments):
        pasted = paste.read(text_of(arguments.file, 4 * paste.LONGEST))
    print_json(paste_document(pasted)) if arguments.json else _print(pasted)
    return 0


def _print(pasted: paste.PastedSettings) -> None:
    settings = pasted.settings.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    for name, value in settings.items():
        print(f"{name} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    for note in pasted.notes:
        print("-", say_message(note))
