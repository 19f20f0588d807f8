"""What the history keeps of an exception that ended a run or a sweep."""

from __future__ import annotations

import subprocess

from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.processes import signal_name


def as_message(error: Exception, run_id: str) -> Message:
    """The error's own message, or a general one that points to the log. `run_id` is a run's or a sweep's."""
    if isinstance(error, PlaygroundError):
        return error.as_message()
    if not isinstance(error, subprocess.CalledProcessError):
        return Message("run.internal", {"run": run_id})
    if (name := signal_name(error.returncode)) is not None:
        return Message("run.driver_killed", {"run": run_id, "signal": name})
    return Message("run.driver_died", {"run": run_id})
