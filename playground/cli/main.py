"""The command line: the page's functions as verbs.

With --json one JSON document goes to standard output and nothing else; logs go to standard error. Exit code 0:
done, 1: the work failed, 2: bad input.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from playground.domain.errors import PlaygroundError
from playground.i18n import say, say_message

# In the order in which --help lists them.
VERBS = ("compare", "sweep", "load", "history", "import", "preflight", "paste", "explain", "prompts", "doctor")


def main(argv: list[str] | None = None) -> int:
    arguments = _parser(sys.argv[1:] if argv is None else argv).parse_args(argv)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        return int(arguments.verb(arguments))
    except PlaygroundError as error:
        for problem in error.all:
            print(say_message(problem), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, Python would report the same error once more when it
        # flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 1


def _parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """With the verb that comes first alone, for importing the others takes a second; with all if there is none."""
    parser = argparse.ArgumentParser(prog="python -m playground", description=say("cli.what"))
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb in argv[:1] if argv[:1] and argv[0] in VERBS else VERBS:
        # `import` is a word of Python's.
        import_module(f"playground.cli.verbs.{verb}{'_' if verb == 'import' else ''}").add_to(verbs)
    return parser


if __name__ == "__main__":
    sys.exit(main())
