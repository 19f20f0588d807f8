"""One row of the table of causes."""

from __future__ import annotations

from dataclasses import dataclass

from playground.engine.failures import remedy_rules
from playground.engine.failures.remedy_rules import Rule


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an engine failed.

    `error`: found in the root exception, "CLASS: TEXT"; with `frames` only if that is found in its traceback, too.
    `line`: found in a line that belongs to no exception. The patterns' named groups become the parameters of the
    sentence; without a group `detail`, that is the whole line. `vague`: the exception says only where it happened,
    and a line that tells more is preferred. `changes` offers what to change then.
    """

    name: str
    error: str | None = None
    changes: Rule = remedy_rules.nothing
    frames: str | None = None
    line: str | None = None
    vague: bool = False
