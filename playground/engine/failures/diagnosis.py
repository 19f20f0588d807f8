"""Finds what went wrong, from log lines and an exit code, with the figures that the log gives."""

from __future__ import annotations

import re
from collections.abc import Sequence

from playground.domain.errors import EngineFailed
from playground.domain.message import Message
from playground.processes import exit_code_text, signal_name

from .causes import CAUSES, SIGNALS
from .stages import reached

TAIL_LINES = 30
# Characters of a log line that are looked at; a pattern takes up to their square.
LONGEST_LINE = 4000
# A line of source code in a traceback: it contains messages without their values.
SOURCE = re.compile(r"(?:\([^)]*\) )?(?:ERROR [^]]*\] )? {4}")
# What the engine was really started with, defaults included: a remedy is relative to it.
FIGURES = tuple(
    re.compile(pattern)
    for pattern in (
        r"'gpu_memory_utilization': (?P<gpu_memory_utilization>[\d.]+)",
        r"'max_num_seqs': (?P<max_num_seqs>\d+)",
        r"max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)",
        r"Explicitly set \((?P<kv_set>[\d.]+)/[\d.]+\) GiB for KV cache",
    )
)


def diagnose(log: Sequence[str], exit_code: int, log_file: str) -> EngineFailed:
    """The cause, the stage in which it occurred, and the log's last lines. Blocking: a long log takes time."""
    log = [line[:LONGEST_LINE] for line in log]
    text = "\n".join(line for line in log if not SOURCE.match(line))
    for cause in CAUSES:
        # The same exception is often logged by worker, core and server in turn: the first is the cause.
        if match := cause.search(text):
            params = {"code": exit_code, **_named(match)}
            return _failed(cause.name, log, reached(log), log_file, {**params, "code": _code(params["code"])})
    return _failed(SIGNALS.get(exit_code, "unknown"), log, reached(log), log_file, {"code": _code(exit_code)})


def _code(exit_code: object) -> object:
    """The exit code; as text with the signal's name where a signal ended the process."""
    return exit_code_text(exit_code) if isinstance(exit_code, int) and signal_name(exit_code) else exit_code


def hung(log: Sequence[str], stage: str, seconds: float, in_stage_s: float, log_file: str) -> EngineFailed:
    """A start was given up after `seconds`, of which it spent the last `in_stage_s` in one stage."""
    return _failed("timeout", log, stage, log_file, {"seconds": seconds, "in_stage_s": in_stage_s})


def _failed(name: str, log: Sequence[str], stage: str, log_file: str, params: dict[str, object]) -> EngineFailed:
    tail = [line for line in log if line.strip()][-TAIL_LINES:]
    figures = {
        figure: value
        for pattern in FIGURES
        for line in log
        if (m := pattern.search(line))
        for figure, value in _named(m).items()
    }
    known = {**figures, **params, "stage": Message(f"stage.{stage}"), "log": log_file}
    return EngineFailed(f"failure.{name}", tail, **known)


def _named(match: re.Match[str]) -> dict[str, object]:
    """The groups as numbers where they are numbers; "-" where the message did not say."""
    return {name: _value(text) for name, text in match.groupdict().items()}


def _value(text: str | None) -> int | float | str:
    if text is None:
        return "-"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text.strip()
