"""The command line: the page's functions as verbs.

With --json one JSON document goes to standard output and nothing else; logs go to standard error. Exit code 0:
done, 1: the work failed, 2: bad input.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys

from playground.domain.errors import PlaygroundError
from playground.i18n import say, say_message

from . import compare, doctor, explain, history, import_, load, paste, preflight, prompts, sweep

# In the order in which --help lists them.
VERBS = (compare, sweep, load, history, import_, preflight, paste, explain, prompts, doctor)


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        return int(arguments.verb(arguments))
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, Python would report the same error once more when it
        # flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m playground", description=say("cli.what"))
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb in VERBS:
        verb.add_to(verbs)
    return parser


if __name__ == "__main__":
    sys.exit(main())
