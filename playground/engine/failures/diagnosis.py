"""Finds what went wrong, from a log and an exit code, with the figures that the log gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from signal import SIGABRT, SIGSEGV

from playground.domain.errors import EngineFailed
from playground.domain.message import Message
from playground.processes import exit_code_text, signal_name

from .causes import CAUSES, SIGNALS, Cause, ends
from .log_lines import LONGEST_LINE
from .pydantic_errors import refused_fields
from .root import Weight, root_chain, root_first, weight
from .stages import ANSWERING, stage_message
from .start_log import ANY_SIGN, SIGNS, StartLog, last_start, stage_in
from .tracebacks import Chain, LoggedException

TAIL_LINES = 30
# Of an exception's text a sentence quotes so much.
QUOTED_LINES, QUOTED = 6, 600
# Lines that are named as evidence of one sign.
SIGN_LINES = 5
# The table's patterns see so much of an exception.
MATCHED_LINE, MATCHED = 2_000, 12_000
ERRORS = {index: re.compile(cause.error, re.MULTILINE) for index, cause in enumerate(CAUSES) if cause.error}
FRAMES = {index: re.compile(cause.frames) for index, cause in enumerate(CAUSES) if cause.frames}
WITHIN = re.compile(
    r"(?<![\w.])(?P<kind>(?:\w{1,60}\.){0,8}(?:[A-Z]\w{0,60}(?:Error|Exception)|Exception|OutOfResources))"
    r"(?:: |\()(?P<text>.+)"
)
# That a process was ended follows from the exception of another.
ENDS = frozenset(cause.name for cause in ends.CAUSES) - {"oom_killed"} | {"dependency"}
# What pydantic puts around a message.
AROUND = re.compile(r"^\s*(?:Value error|Assertion failed), | \[type=\w+, input.*$")


@dataclass(frozen=True)
class Diagnosis:
    """Why an engine failed: the name of a cause in the table, None where the log shows no failure.

    `evidence`: the numbers of the lines that say so. `stage`: None where the log does not show it.
    """

    cause: str | None
    stage: str | None
    params: dict[str, object] = field(default_factory=dict)
    evidence: tuple[int, ...] = ()

    @property
    def message(self) -> Message:
        """The sentence of a failure."""
        return Message(f"failure.{self.cause}", {**self.params, "stage": stage_message(self.stage)})


def diagnose(log: Sequence[str], exit_code: int, log_file: str) -> EngineFailed:
    """Why an engine of this host ended, and the log's last lines. Blocking: a long log takes time."""
    start = last_start(enumerate(log, start=1))
    diagnosis = examine(start, exit_code)
    # The log is whole: where it shows nothing yet, Python was starting.
    return _failed(log, replace(diagnosis, stage=diagnosis.stage or "importing").message, log_file, start)


def hung(log: Sequence[str], stage: str, seconds: float, in_stage_s: float, log_file: str) -> EngineFailed:
    """A start was given up after `seconds`, of which it spent the last `in_stage_s` in one stage."""
    params = {"stage": stage_message(stage), "seconds": seconds, "in_stage_s": in_stage_s}
    message = Message("failure.timeout", params)
    return _failed(log, message, log_file, last_start(enumerate(log, start=1)))


def _failed(log: Sequence[str], message: Message, log_file: str, start: StartLog) -> EngineFailed:
    tail = [line[:LONGEST_LINE] for line in log if line.strip()][-TAIL_LINES:]
    params = {**figures_of(start), **message.params, "log": log_file}
    return EngineFailed(message.message_id, tail, **params)


def figures_of(start: StartLog) -> dict[str, object]:
    """What the engine was started with, by the log."""
    return {name: _value(text) for name, text in start.figures.items()}


def examine(start: StartLog, exit_code: int | None) -> Diagnosis:
    """The cause by the root exception; where there is none, or it says only where it was raised, by other lines;
    then by the exit code (None: not known)."""
    # A request that failed does not explain why an engine has ended.
    chains = [chain for chain in start.tracebacks.chains if exit_code is None or chain.fatal or not chain.request]
    chain = root_chain(chains)
    rank = Weight.WRAPPER if chain is None else weight(chain)
    exceptions = root_first(chain) if chain is not None else []
    matched = _matched(start, exceptions) if rank < Weight.WRAPPER else None
    vague = None
    if rank < Weight.CONSEQUENCE:
        if matched is None:
            cause = "request_failed" if rank == Weight.REQUEST else "other"
            return replace(_unrecognised(start, exceptions[0]), cause=cause)
        if not CAUSES[matched[0]].vague:
            return matched[1]
        vague = matched[1]
    lines = [(line.number, line.text) for line in start.loud]
    if vague is not None:
        lines += [pair for link in exceptions for pair in zip(link.numbers, link.lines, strict=True)]
    else:
        lines += [(link.numbers[0], str(link)) for chain in chains for link in chain.exceptions]
    told = _by_line(start, lines, vague)
    if told is None and matched is not None:
        told = matched[1]
    return told or _ended(start, chains, exceptions if rank == Weight.CONSEQUENCE else [], exit_code)


def _matched(start: StartLog, exceptions: Sequence[LoggedException]) -> tuple[int, Diagnosis] | None:
    """The first of the exceptions, the root before what followed, that a row of the table knows."""
    vague = None
    for exception in exceptions:
        text = "\n".join(line[:MATCHED_LINE] for line in str(exception).split("\n"))[:MATCHED]
        for index, pattern in ERRORS.items():
            match = pattern.search(text)
            if match is None:
                continue
            frames = FRAMES.get(index)
            frame = None if frames is None else _last_frame(frames, exception)
            if frames is not None and frame is None:
                continue
            found = _by_exception(start, CAUSES[index], exception, text, match, frame)
            if not CAUSES[index].vague:
                return index, found
            vague = vague or (index, found)
    return vague


def _last_frame(pattern: re.Pattern[str], exception: LoggedException) -> str | None:
    return next((frame for frame in reversed(exception.frames) if pattern.search(frame)), None)


def _by_exception(
    start: StartLog,
    cause: Cause,
    exception: LoggedException,
    text: str,
    match: re.Match[str],
    frame: str | None,
) -> Diagnosis:
    first, last = text.count("\n", 0, match.start()), text.count("\n", 0, match.end())
    numbers = [exception.numbers[0], *exception.numbers[first : last + 1]]
    params = named(match)
    if cause.name == "validation":
        params |= refused_fields(exception)
        numbers = exception.numbers
    if not exception.text:
        params.setdefault("detail", quoted(exception))
    if params.get("detail", "-") == "-":
        params["detail"] = _line_around(text, match)
    if frame is not None and exception.frame_number is not None:
        numbers.append(exception.frame_number)
    return Diagnosis(cause.name, _stage(start, exception), params, tuple(sorted({*numbers})))


def _unrecognised(start: StartLog, exception: LoggedException) -> Diagnosis:
    numbers = [*exception.numbers[:QUOTED_LINES]]
    if not exception.text and exception.frame_number is not None:
        numbers.append(exception.frame_number)
    return Diagnosis("other", _stage(start, exception), {"detail": quoted(exception)}, tuple(sorted({*numbers})))


def _by_line(start: StartLog, lines: Sequence[tuple[int, str]], vague: Diagnosis | None) -> Diagnosis | None:
    """What lines say that belong to no exception."""
    lines = [(number, text[:MATCHED_LINE]) for number, text in lines if ANY_SIGN.search(text[:MATCHED_LINE])]
    for cause, sign in SIGNS.items():
        matches = [(number, match) for number, text in lines if (match := sign.search(text))]
        if not matches or (vague is not None and cause.name in ENDS):
            continue
        match = matches[0][1]
        params = named(match)
        if cause.name == "crashed":
            params = {"code": _code(params, match[0])}
        if params.get("detail", "-") == "-":
            params["detail"] = _line_around(match.string, match)
        numbers = {number for number, _ in matches[:SIGN_LINES]} | {*(vague.evidence if vague else ())}
        return Diagnosis(cause.name, vague.stage if vague else start.stage, params, tuple(sorted(numbers)))
    return None


def _ended(
    start: StartLog, chains: Sequence[Chain], exceptions: Sequence[LoggedException], exit_code: int | None
) -> Diagnosis:
    """What is left to say where neither an exception nor a line tells the cause."""
    if exceptions:
        return _unrecognised(start, exceptions[0])
    if exit_code in SIGNALS:
        return Diagnosis(SIGNALS[exit_code], start.stage, {"code": exit_code_text(exit_code)})
    if chains:
        wrapper = chains[0].exceptions[0]
        stopped = all(link.kind == "KeyboardInterrupt" for chain in chains for link in chain.exceptions)
        return Diagnosis("stopped" if stopped else "core_died", start.stage, {}, (wrapper.numbers[0],))
    if start.stage != ANSWERING and (exception := _within_a_line(start)) is not None:
        matched = _matched(start, [exception])
        return matched[1] if matched is not None else _unrecognised(start, exception)
    errors = [line for line in start.loud if line.level and line.text.strip()]
    if errors and start.stage != ANSWERING:
        line = errors[0]
        return Diagnosis("other", start.stage, {"detail": line.text.strip()[:QUOTED]}, (line.number,))
    if exit_code is None:
        return Diagnosis(None, start.stage)
    code = exit_code_text(exit_code) if signal_name(exit_code) else exit_code
    return Diagnosis("unknown", start.stage, {"code": code})


def _within_a_line(start: StartLog) -> LoggedException | None:
    """The first exception that a line quotes after words, or after the prefix of a program unknown here."""
    for line in start.loud:
        if match := WITHIN.search(line.text[:MATCHED_LINE]):
            return LoggedException(match["kind"], [match["text"]], [line.number])
    return None


def _stage(start: StartLog, exception: LoggedException) -> str | None:
    return start.stage or stage_in(exception)


def quoted(exception: LoggedException) -> str:
    """The exception as it stands; where it has no text, with the place that raised it."""
    if exception.text:
        lines = [AROUND.sub("", line).strip() for line in str(exception).split("\n")[:QUOTED_LINES]]
        return " ".join(line for line in lines if line)[:QUOTED]
    if not exception.frames:
        return exception.kind
    place, _, code = exception.frames[-1].partition(": ")
    file, _, function = place.partition(" ")
    return f"{exception.kind} ({file.rpartition('/')[2]}, {function}: {code.strip()})"[:QUOTED]


def _line_around(text: str, match: re.Match[str]) -> str:
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return AROUND.sub("", AROUND.sub("", text[begin : end if end >= 0 else len(text)])).strip()[:QUOTED]


def _code(params: dict[str, object], words: str) -> str:
    """The signal by its number or 128 + its number, or by the words that name it."""
    ended_by = SIGABRT if re.search(r"terminate|Abort|ABRT", words) else SIGSEGV
    return exit_code_text(next((number for number in params.values() if isinstance(number, int)), -ended_by))


def named(match: re.Match[str]) -> dict[str, object]:
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
