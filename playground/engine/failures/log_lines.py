"""The lines of a log without what a terminal, a container, a scheduler or vLLM's logger put before them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Characters of a log line that are looked at; a pattern takes up to their square.
LONGEST_LINE = 4000
# Of a line that was written over and over (a progress bar), the first and the last states that are looked at.
KEPT_STATES = 8
MOST_PREFIXES = 6
TERMINAL = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[ -/]?[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])|[\0\x07\x08]"
)
TIME = r"(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?"
LEVEL = r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
PROCESS = r"\((?P<process>[^()\n]{0,80}pid=\d{1,10}[^()\n]{0,60})\) ?"
# What is put before a line, by whom; several may follow each other. One space ends each: further ones indent.
PREFIX = re.compile(
    "|".join(
        (
            PROCESS,
            # vLLM's logger, and older versions of it without the first bracket
            LEVEL + " " + TIME.replace("(?:Z", "(?: UTC)?(?:Z", 1) + r" \[?(?P<place>[^\s\]]{1,100}:\d{1,6})\] ?",
            # uvicorn and Python's own format
            r"(?P<plain>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?: {4,5}|[\w.]{1,80}: ?)",
            # Python's logging with a time before the level
            r"" + TIME + r"(?: - [\w.]{1,80})? (?:- |\[)?(?P<timed>DEBUG|INFO|WARNING|ERROR|CRITICAL)\]? "
            r"(?:- |[\w./]{1,80}:\d{1,6} -- )?",
            # Kubernetes, a container runtime, a CI job
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?",
            r"\[pod/[\w./-]{1,200}\] ",
            # systemd's journal, syslog
            r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})? \S{1,80} [\w./@-]{1,80}(?:\[\d{1,10}\])?: ",
            r"[\w.-]{1,60} [\w.@-]{1,60}\[\d{1,10}\]: ",
            # docker compose, podman, pm2
            r"\[?(?P<service>[A-Za-z][\w.-]{0,80})\]? {1,40}\| ?|\d{1,3}\|[\w.-]{1,80} {1,40}\| ?",
            # a time by itself
            r"\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]\n]{0,20}\] |\[?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\]? ",
            # torchrun, MPI, Slurm
            r"\[(?P<rank>(?:rank|default)\d{1,4})\]: ?|\[\d{1,4},\d{1,4}\]<std(?:out|err)>: ?|\d{1,3}: ",
            # a quotation, or a block that a paste has indented
            r"> (?=[(A-Z ])| {1,40}(?=\([^()\n]{0,80}pid=\d|(?:INFO|WARNING|ERROR) \d\d-\d\d )",
        )
    )
)
# tqdm leaves the cursor behind its bar.
BAR = re.compile(r"[^|]{0,80}\d%\|[^|]{0,80}\| \d+/\d+ \[[^\]]{0,80}\](?=\S)")
# Where several lines became one, since the paste lost their ends.
JOINED = re.compile(
    r"(?:\([^()\n]{0,80}pid=\d{1,10}\) )?(?:INFO|WARNING|ERROR) "
    r"\d\d-\d\d \d\d:\d\d:\d\d \[?[^\s\]]{1,100}:\d{1,6}\]"
)
# The fields of a line of JSON that hold what was printed.
JSON_FIELDS = ("log", "message", "msg", "textPayload", "exc_info")
MOST_JSON_LINES = 200


@dataclass(slots=True)
class LogLine:
    """`number`: in the file, from 1. `stream`: who printed it. `level`: "" where no logger did."""

    number: int
    stream: str
    level: str
    text: str


def log_lines(lines: Iterable[tuple[int, str]]) -> Iterator[LogLine]:
    """What the numbered lines of a file say. One may hold several: states of a progress bar, lines that a paste
    has joined."""
    for number, line in lines:
        if line:
            for state in _states(line):
                yield _log_line(number, state)
        else:
            yield LogLine(number, " ", "", "")


def _states(line: str) -> list[str]:
    if line.startswith("{") and (text := _json_text(line)):
        return [part[:LONGEST_LINE] for part in text.split("\n")[:MOST_JSON_LINES]]
    if len(line) > LONGEST_LINE:
        tail = line[-LONGEST_LINE:] if "\r" in line else ""
        line = f"{line[:LONGEST_LINE]}\r{tail}" if tail else line[:LONGEST_LINE]
    if "\x1b" in line or "\0" in line:
        line = TERMINAL.sub("", line)
    states = line.rstrip("\r\n").split("\r")
    if len(states) > 2 * KEPT_STATES:
        states = [*states[:KEPT_STATES], *states[-KEPT_STATES:]]
    return [part for state in states for part in (_parts(state) if state.count("] ") > 1 else (state,))]


def _parts(line: str) -> list[str]:
    """The lines that were joined to this one."""
    starts = [match.start() for match in JOINED.finditer(line)][1:]
    return [line[start:end].rstrip() for start, end in zip([0, *starts], [*starts, len(line)], strict=True)]


def _json_text(line: str) -> str:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    fields = [values.get(name) for name in JSON_FIELDS] if isinstance(values, dict) else []
    texts = [text for text in fields if isinstance(text, str)]
    return "\n".join(texts).rstrip()


def _log_line(number: int, text: str) -> LogLine:
    if "%|" in text:
        text = BAR.sub("", text, count=1)
    process = level = place = ""
    start = 0
    for _ in range(MOST_PREFIXES):
        match = PREFIX.match(text, start)
        if match is None:
            break
        start = match.end()
        match match.lastgroup:
            case "process" | "rank":
                process = match[match.lastgroup]
            case "service":
                process = process or match["service"]
            case "place":
                level, place = match["level"], match["place"]
                break
            case "plain" | "timed":
                level = match[match.lastgroup]
                break
    return LogLine(number, f"{process} {place}", level, text[start:])
