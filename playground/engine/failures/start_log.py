"""What a log says of an engine's last start: its exceptions, other lines that tell, its stage and settings."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

from .causes import CAUSES
from .log_lines import LogLine, log_lines
from .stages import ANSWERING, STARTED, later, stage_of, stage_of_frame
from .tracebacks import QUIET, LoggedException, Tracebacks

# Where a container or a script has started the engine again.
VERSION, ARGUMENTS = "vLLM API server version", "non-default args: "
# An engine starts, and says with what, in its first lines.
STARTING_LINES = 20_000
# What the engine was really started with, defaults included: a remedy is relative to it.
FIGURES = re.compile(
    r"'gpu_memory_utilization': (?P<gpu_memory_utilization>[\d.]+)|'max_num_seqs': (?P<max_num_seqs>\d+)"
    r"|max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)"
    r"|Explicitly set \((?P<kv_set>[\d.]+)/[\d.]+\) GiB for KV cache"
)
SIGNS = {cause: re.compile(cause.line, re.MULTILINE) for cause in CAUSES if cause.line}
ANY_SIGN = re.compile(
    "|".join(re.sub(r"\(\?P<\w+>", "(?:", sign.pattern) for sign in SIGNS.values()), re.MULTILINE
)
# Source in a traceback that was cut contains messages without their values; what describes a pod is indented, too.
CODE = re.compile(r" {4}(?!\s*\"?[A-Z][\w ]{0,30}\"?: )")
# Signs stand beside an exception or at the end of a process.
KEPT_LINES = 2_000


class StartLog:
    """One start of an engine, read line by line. `known_lines`: how many a logger has printed."""

    def __init__(self) -> None:
        self.tracebacks = Tracebacks()
        self.stage: str | None = None
        self.figures: dict[str, str] = {}
        self.args = ""
        self.known_lines = 0
        # Lines that belong to no exception and no quiet logger.
        self._first: list[LogLine] = []
        self._last: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._lines = 0

    @property
    def loud(self) -> list[LogLine]:
        """The first and the last lines that may tell of a failure without being an exception."""
        return [*self._first, *self._last]

    @property
    def failed(self) -> bool:
        return bool(self.tracebacks.chains) or any(ANY_SIGN.search(line.text) for line in self.loud)

    def read(self, line: LogLine) -> None:
        self._lines += 1
        self.known_lines += bool(line.level)
        if self.stage != ANSWERING:
            self._follow(line)
        if self.tracebacks.read(line) or line.level in QUIET or not line.text or CODE.match(line.text):
            return
        (self._first if len(self._first) < KEPT_LINES else self._last).append(line)

    def _follow(self, line: LogLine) -> None:
        if STARTED in line.text:
            self.stage = ANSWERING
        if self._lines > STARTING_LINES or self.stage == ANSWERING:
            return
        stage = stage_of(line.text)
        if stage is not None and (self.stage is None or later(stage, self.stage)):
            self.stage = stage
        for match in FIGURES.finditer(line.text):
            self.figures |= {name: value for name, value in match.groupdict().items() if value}
        if not self.args and ARGUMENTS in line.text:
            self.args = line.text.partition(ARGUMENTS)[2]


def last_start(lines: Iterable[tuple[int, str]]) -> StartLog:
    """The last start that the log has; the one before it, if the last has neither failed nor come to its end."""
    before, start = None, StartLog()
    for line in log_lines(lines):
        if (VERSION in line.text or ARGUMENTS in line.text) and start.failed:
            before, start = start, StartLog()
        start.read(line)
    unfinished = not start.failed and start.stage != ANSWERING
    return before if before is not None and unfinished else start


def stage_in(exception: LoggedException) -> str | None:
    """The stage that an exception's traceback shows."""
    return next((stage for frame in reversed(exception.frames) if (stage := stage_of_frame(frame))), None)
