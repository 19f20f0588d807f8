"""Logs of any form are read: encodings, line ends, prefixes, any length; and what is no log is refused."""

from __future__ import annotations

import io
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.explained import CASES, explained

from playground.domain.errors import InvalidInput
from playground.engine.failures.log_file import MOST_LINES, read_log
from playground.engine.failures.log_lines import log_lines
from playground.i18n import LOCALES, say_message

LOG = CASES["settings/eagle-width"]["log"]
# Nothing may take longer on the slowest machine of a test; it all takes about a second.
HANG_S = 20
HOSTILE = {
    "one line": "x",
    "an error": "ValueError: NCCL socket chat template pinned ",
    "line ends": "\n",
    "short lines": "a\n",
    "states": "a\r",
    "escapes": "\x1b[31m",
    "brackets": "(pid=1 (((\n",
    "frames": '  File "x", line 1, in f\n',
    "errors": "ValueError: x\n",
    "restarts": "non-default args: {\nKilled\n",
    "groups": "  + Exception Group Traceback (most recent call last):\n  | \n",
    "chains": "ValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n",
    "streams": "(a pid=1) ERROR 03-02 08:00:00 [a.py:1] Traceback (most recent call last):\n",
    "JSON": '{"log":"[[[[[[[[',
    "joined": "ERROR 03-02 08:00:00 [a.py:1] x ",
}


@pytest.mark.parametrize(
    "prefix",
    [
        "vllm-1  | ",
        "2026-03-02T08:00:30.123456789Z ",
        "2026-03-02T08:00:30.123456789+00:00 stderr F ",
        "Mar 02 08:00:30 box vllm[812]: ",
        "2026-03-02T08:00:30+0000 box python3[812]: ",
        "[pod/vllm-0/vllm] ",
        "[rank0]: ",
        "3: ",
        "0|vllm     | ",
        "[vllm] | ",
        "[2026-03-02 08:00:30] ",
        "08:00:30.123 ",
        "[1,0]<stderr>:",
        "\x1b[36m(RayWorkerWrapper pid=812, ip=10.0.0.4)\x1b[0m ",
        "    ",
    ],
)
def test_what_stands_before_each_line(prefix: str) -> None:
    log = "\n".join(f"{prefix}{line}" for line in LOG.splitlines())
    expected, explanation = explained(LOG), explained(log)
    assert (explanation.cause, explanation.stage) == (expected.cause, expected.stage)
    assert explanation.evidence == expected.evidence


@pytest.mark.parametrize(
    "content",
    [
        LOG.replace("\n", "\r\n").encode(),
        LOG.encode("utf-8-sig"),
        LOG.encode("utf-16"),
        b"\xff\xfe broken \xff\xfe"[4:] + b"\n" + LOG.encode(),
        LOG.replace("ERROR", "\x1b[31mERROR\x1b[0m").encode(),
    ],
    ids=["CRLF", "BOM", "UTF-16", "broken bytes", "colours"],
)
def test_how_it_is_written(content: bytes) -> None:
    assert explained(content).cause == "draft_mismatch"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "explain.empty"),
        (b" \n\n ", "explain.empty"),
        (bytes(range(256)) * 50, "explain.binary"),
        (b"# vLLM\n\nEasy, fast and cheap serving.\n", "explain.no_log"),
        (b'{"architectures": ["LlamaForCausalLM"]}', "explain.no_log"),
    ],
)
def test_what_is_no_log(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        explained(content)
    assert raised.value.message_id == problem
    assert all(say_message(raised.value, locale) for locale in LOCALES)


def test_a_long_log_is_read_from_both_ends() -> None:
    """The lines keep their numbers, and what was not read is said."""
    start, middle, end = "INFO 03-02 08:00:00 [x.py:1] first\n", "INFO 03-02 08:00:00 [x.py:1] y\n" * 90_000, LOG
    explanation = explained(start + middle + end, 20_000)
    assert explanation.cause == "draft_mismatch"
    assert explanation.evidence == tuple(number + 90_001 for number in explained(LOG).evidence)
    assert explanation.unread_bytes == len(start + middle + end) - 20_000


def test_a_log_of_very_many_lines_is_read_from_both_ends() -> None:
    log = b"first\n" + b"\n" * MOST_LINES + b"last"
    lines = list(read_log(io.BytesIO(log), "e.log", len(log)).lines)
    assert (lines[0], lines[-1], len(lines)) == ((1, "first"), (MOST_LINES + 2, "last"), MOST_LINES)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_log_takes_long(name: str) -> None:
    piece = HOSTILE[name]
    log = (LOG + piece * (1_000_000 // len(piece))).encode()
    began = time.monotonic()
    explained(log, len(log))
    assert time.monotonic() - began < HANG_S


@pytest.mark.parametrize("name", ["one line", "line ends", "errors", "streams"])
def test_no_log_takes_much_memory(name: str) -> None:
    piece = HOSTILE[name]
    log = (LOG + piece * (200_000 // len(piece))).encode()
    tracemalloc.start()
    explained(log, len(log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(log)


REAL = [line for case in CASES.values() for line in case["log"].splitlines()]
LINES = st.sampled_from([*REAL, "", "Traceback (most recent call last):"])


def said_of(content: bytes) -> str:
    """What is said of a log in each language, or why it is refused."""
    try:
        explanation = explained(content)
    except InvalidInput as refused:
        return say_message(refused)
    assert list(explanation.evidence) == sorted({*explanation.evidence})
    return min(say_message(explanation.sentence, locale) for locale in LOCALES)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.one_of(LINES, st.text(max_size=60)), max_size=30), st.sampled_from(["\n", "\r\n", "\r", " "]))
def test_any_lines_have_an_explanation_or_are_refused(lines: list[str], end: str) -> None:
    assert said_of(end.join(lines).encode("utf-8", "replace"))


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_have_an_explanation_or_are_refused(content: bytes) -> None:
    assert said_of(content)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.text(max_size=200))
def test_numbers_of_lines_are_kept(text: str) -> None:
    assert all(line.number == 7 for line in log_lines([(7, text)]))
