"""The exceptions of a log, each with the frames of its traceback, in chains as Python prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .log_lines import LogLine
from .stages import STARTED

MOST_FRAMES = 60
MOST_TEXT_LINES = 60
# Lines of other writers that may stand in the middle of a traceback.
MOST_STRANGE_LINES = 200
MOST_CHAINS, MOST_LINKS = 2_000, 100
TRACEBACK = "Traceback (most recent call last)"
FRAME = re.compile(r' *File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,7})(?:, in (?P<function>.{1,200}))?')
# In a traceback any class may stand; elsewhere only what is called an error.
CLASS = r"[A-Za-z_]\w{0,80}(?:\.[A-Za-z_]\w{0,80}){0,8}"
IN_TRACEBACK = re.compile(rf"(?P<kind>{CLASS})(?:\((?P<inner>\w{{1,80}})\))?(?:: ?(?P<text>.*)|\s*)$", re.DOTALL)
ALONE = re.compile(
    rf"(?P<kind>(?:{CLASS}\.)?(?:[A-Z_]\w{{0,80}}(?:Error(?:_\w{{1,40}})?|Exception|Interrupt|OutOfResources|ExceptionGroup)"
    rf"|Exception)|(?:[a-z_]\w{{0,80}}\.){{1,8}}(?:[A-Z]\w{{0,80}}|error|gaierror|timeout))"
    r"(?:\((?P<inner>\w{1,80})\))?(?:: (?P<text>.*)|:?\s*)$",
    re.DOTALL,
)
QUIET = frozenset(("DEBUG", "INFO", "WARNING"))
ENGINE = re.compile(r"EngineCore|Worker")
KEYWORDS = frozenset(("else", "try", "finally", "return", "pass", "break", "continue", "raise", "await", "yield"))
CAUSED = "The above exception was the direct cause of the following exception"
HANDLING = "During handling of the above exception, another exception occurred"
# vLLM says so right before the exception that ended a process.
FATAL = re.compile(
    r"failed to start|fatal error|background task failed|hit an exception|WorkerProc failed|RayWorkerProc failed"
    r"|Error executing method"
)
GROUP = re.compile(r"[ ]*[|+](?:-[-+ \d.]{3,80}| )?")
# Raw lines of other writers end an exception's text.
STRANGE = re.compile(
    r"/\S{1,200}:\d{1,6}: |\[[WEFI]\d{3,8}[ :]|\[\S{1,100}:\d{1,6}\] |\S{1,100}:\d{1,8}:\d{1,8} \["
    r"|Loading |Capturing |Process [\w-]+:|Exception ignored|terminate called|Killed$|Aborted|Segmentation fault"
    r"|Bus error|\*\*\*|Fatal Python|Stack dump|nanobind: leaked|.*exited with code \d+$|```"
)


@dataclass(slots=True)
class LoggedException:
    """`text` may be empty or have several lines. `frames`: "FILE:LINE FUNCTION: CODE", the raising one last."""

    kind: str
    lines: list[str]
    numbers: list[int]
    frames: list[str] = field(default_factory=list)
    frame_number: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


@dataclass(slots=True)
class Chain:
    """Exceptions of which each led to the next.

    `fatal`: vLLM said that they ended the process. `request`: a server had them that was serving by then.
    """

    fatal: bool
    request: bool
    # Each with whether it was raised while the one before was only being handled.
    links: list[tuple[LoggedException, bool]] = field(default_factory=list)

    @property
    def exceptions(self) -> list[LoggedException]:
        return [exception for exception, _ in self.links]


@dataclass(slots=True)
class _Stream:
    """How far one writer's traceback has been read."""

    state: str = "outside"  # outside, frames, text, between
    chain: Chain | None = None
    frames: list[str] = field(default_factory=list)
    frame_number: int | None = None
    indent: int = 0
    relation: str | None = None
    fatal: bool = False
    ignored: bool = False
    # Of a request: the server says so before the traceback.
    request: bool = False
    group: bool = False
    strange: int = 0
    # Pastes lose the indentation: then the line after a frame is its code.
    code_next: bool = False


class Tracebacks:
    """Reads lines of several processes that print at once; `chains` holds what was read, in the log's order."""

    def __init__(self) -> None:
        self.chains: list[Chain] = []
        self._streams: dict[str, _Stream] = {}
        self._serving = False

    def read(self, line: LogLine) -> bool:
        """Whether the line belongs to a traceback or to an exception's text."""
        if line.level in QUIET:
            self._serving = self._serving or STARTED in line.text
            return False
        stream = self._streams.get(line.stream)
        if stream is None:
            stream = self._streams[line.stream] = _Stream()
        text = line.text
        if TRACEBACK in text:
            self._begin(stream, text)
            return True
        if stream.group:
            text = GROUP.sub("", text, count=1)
        elif stream.indent:
            text = text[min(stream.indent, len(text) - len(text.lstrip())) :]
        if stream.state == "frames":
            return self._in_frames(stream, line, text)
        if FRAME.match(text):
            return self._frame(stream, line, text)
        if stream.state == "text":
            return self._in_text(stream, line, text)
        return self._outside(stream, line, text)

    def _begin(self, stream: _Stream, text: str) -> None:
        before = text[: text.index(TRACEBACK)]
        stream.fatal = stream.fatal or FATAL.search(before) is not None
        stream.indent = len(before) if not before.strip() else 0
        stream.group = "Exception Group" in before or (stream.group and before.strip(" ") == "|")
        stream.state, stream.frames, stream.frame_number, stream.strange = "frames", [], None, 0
        if stream.relation is None:
            stream.chain = None

    def _frame(self, stream: _Stream, line: LogLine, text: str) -> bool:
        match = FRAME.match(text)
        assert match is not None
        if stream.state != "frames":
            stream.state, stream.frames, stream.strange = "frames", [], 0
            if stream.relation is None:
                stream.chain = None
        stream.frames.append(f"{match['file']}:{match['line']} {match['function'] or ''}: ")
        if len(stream.frames) > MOST_FRAMES:
            del stream.frames[MOST_FRAMES // 2]
        stream.frame_number = line.number
        stream.code_next = not text.startswith(" ")
        return True

    def _in_frames(self, stream: _Stream, line: LogLine, text: str) -> bool:
        if FRAME.match(text):
            return self._frame(stream, line, text)
        stripped = text.strip()
        if text.startswith(" ") or stream.code_next:
            # Code, or the marks below it.
            stream.code_next = False
            if stream.frames and stream.frames[-1].endswith(": ") and stripped.strip("^~ "):
                stream.frames[-1] = f"{stream.frames[-1]}{stripped[:300]} "
                stream.frame_number = line.number
            return True
        match = IN_TRACEBACK.match(text)
        if match and match["kind"] not in KEYWORDS and (match["text"] is not None or _is_class(match["kind"])):
            self._add(stream, line, match)
        elif stripped and not stripped.startswith("["):
            stream.strange += 1
            if stream.strange > MOST_STRANGE_LINES:
                stream.state = "outside"
            return False
        return True

    def _add(self, stream: _Stream, line: LogLine, match: re.Match[str]) -> None:
        kind = match["kind"]
        exception = LoggedException(kind, [match["text"] or ""], [line.number], stream.frames, stream.frame_number)
        if stream.chain is None:
            stream.chain = Chain(stream.fatal, self._serving and (stream.request or self._of_request(line)))
            if not stream.ignored and len(self.chains) < MOST_CHAINS:
                self.chains.append(stream.chain)
        stream.chain.links.append((exception, stream.relation == HANDLING))
        if len(stream.chain.links) > MOST_LINKS:
            del stream.chain.links[MOST_LINKS // 2]
        stream.state, stream.frames, stream.relation = "text", [], None
        stream.fatal = stream.ignored = stream.request = False

    def _of_request(self, line: LogLine) -> bool:
        """Whether a server has logged the exception; one that it did not catch ends it."""
        return bool(line.level) and ENGINE.search(line.stream) is None

    def _in_text(self, stream: _Stream, line: LogLine, text: str) -> bool:
        """Further lines of an exception's text; a logger repeats its prefix before each."""
        relation = _relation(text)
        if relation:
            stream.state, stream.relation = "outside", relation
            return True
        assert stream.chain is not None
        exception = stream.chain.links[-1][0]
        if not text.strip():
            stream.state = "text" if line.level else "between"
            return True
        if not line.level and ALONE.match(text):
            stream.chain = None
            return self._outside(stream, line, text)
        if not line.level and STRANGE.match(text):
            stream.state = "between"
            return False
        if len(exception.lines) < MOST_TEXT_LINES:
            exception.lines.append(text.rstrip())
            exception.numbers.append(line.number)
        else:
            stream.state = "outside"
        return True

    def _outside(self, stream: _Stream, line: LogLine, text: str) -> bool:
        relation = _relation(text)
        if relation and stream.chain is not None:
            stream.relation = relation
            return True
        if not text.strip():
            return False
        stream.state = "outside"
        if text.startswith("Exception ignored in"):
            stream.ignored = True
            return True
        stream.request = stream.request or "Exception in ASGI application" in text
        match = ALONE.match(text)
        if match:
            if stream.relation is None:
                stream.chain = None
            stream.frames, stream.frame_number = [], None
            self._add(stream, line, match)
            return True
        if FATAL.search(text):
            stream.fatal = True
        return False


def _relation(text: str) -> str | None:
    return CAUSED if CAUSED in text else HANDLING if HANDLING in text else None


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper()
