"""From a dead engine's log and exit code to what went wrong and what to change.

`failures/` holds logs of real starts that failed; provoked.toml tells how each was provoked.
"""

from __future__ import annotations

import os
import re
import tomllib
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.explained import CASES
from support.paths import ROOT

from playground.domain.errors import EngineFailed
from playground.domain.message import Message
from playground.domain.record.run import SideRecord
from playground.domain.spec.settings import EngineSettings
from playground.engine import server
from playground.engine.failures.causes import BY_NAME, SIGNALS
from playground.engine.failures.diagnosis import diagnose, hung
from playground.engine.failures.log_lines import LONGEST_LINE
from playground.engine.failures.remedies import remedy_of
from playground.engine.failures.start_log import last_start
from playground.engine.server import LogTail
from playground.i18n import LOCALES, say_message, table

LOGS = Path(__file__).with_name("logs")
PROVOKED: dict[str, dict[str, Any]] = tomllib.loads((LOGS / "provoked.toml").read_text(encoding="utf-8"))
CATALOGUE = set(BY_NAME)
CORE = "(EngineCore_DP0 pid=42) ERROR 11-29 18:00:00 [core.py:708] "


TRACEBACK = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "ValueError: no such part"]


def lines_of(name: str) -> list[str]:
    return (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()


def said(problem: Message | EngineFailed) -> str:
    """In English; every language can say it."""
    assert all(say_message(problem, locale) for locale in LOCALES)
    return say_message(problem)


@pytest.mark.parametrize("name", PROVOKED)
def test_a_real_failed_start(name: str) -> None:
    told = PROVOKED[name]
    settings = EngineSettings.model_validate(told["settings"])
    log = lines_of(name)
    # One that hung has no exit code: it was given up.
    code = told.get("exit_code")
    if code is None:
        stage = last_start(enumerate(log)).stage
        assert stage is not None
        failure = hung(log, stage, 75.0, 40.0, "e.log")
    else:
        failure = diagnose(log, code, "e.log")
    assert (failure.message_id, failure.params["stage"]) == (told["cause"], Message(told["stage"]))
    # No figure is missing.
    assert not re.search(r"(^| )-[ .,;)]", said(failure).replace(" - ", " "))
    remedy = remedy_of(SideRecord("A", settings, problem=failure.as_message()), {})
    assert remedy is not None
    assert said(remedy.advice)
    changes = [[change.key, "default" if change.value is None else change.value] for change in remedy.changes]
    assert changes == told["changes"]
    assert all(change.apply(settings) != settings for change in remedy.changes)


def test_every_log_is_told_of() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} == set(PROVOKED)


def test_every_cause_has_a_log() -> None:
    seen = {
        case["cause"].removeprefix("failure.") for case in (*PROVOKED.values(), *CASES.values()) if "cause" in case
    }
    # Those of the exit code alone have no message of their own.
    assert seen >= CATALOGUE - set(SIGNALS.values()) - {"unknown"}


def test_the_documentation_lists_every_cause() -> None:
    documented = re.findall(
        r"^\| `([\w.]+)` \|", (ROOT / "docs" / "failures.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    fetching = {message_id for message_id in table() if message_id.startswith("model.")}
    assert sorted(documented) == sorted({f"failure.{name}" for name in CATALOGUE} | fetching)


@pytest.mark.parametrize("model", ["model's", "models's"])
def test_both_spellings_of_a_message(model: str) -> None:
    """0.32 mended the spelling of older versions; both are supported."""
    log = [
        f"ValueError: To serve at least one request with the {model} max seq len (8192), (0.18 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (0.1 GiB). Try increasing"
    ]
    assert diagnose(log, 1, "e.log").message_id == "failure.kv_too_small"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (137, "killed"),
        (132, "illegal_instruction"),
        (139, "crashed"),
        (134, "crashed"),
        (1, "unknown"),
        # A server whose engine core died ends with 0.
        (0, "unknown"),
    ],
)
def test_exit_code_of_a_silent_engine(code: int, name: str) -> None:
    for log in ([], ["INFO all is well"]):
        failure = diagnose(log, code, "/s/e.log")
        assert failure.message_id == f"failure.{name}"
        assert said(failure)


@pytest.mark.parametrize(
    ("log", "code", "signal"),
    [
        ([], 139, "SIGSEGV"),
        ([], 143, "SIGTERM"),
        (
            [f"{CORE}RuntimeError: Engine core initialization failed. Failed core proc(s): {{'x': -11}}"],
            1,
            "SIGSEGV",
        ),
    ],
)
def test_a_signal_is_named(log: list[str], code: int, signal: str) -> None:
    assert signal in said(diagnose(log, code, "e.log"))


def test_the_first_of_several_errors_is_the_cause() -> None:
    log = ["ValueError: the cause", "RuntimeError: what followed"]
    assert diagnose(log, 1, "/s/e.log").params["detail"] == "ValueError: the cause"


def test_the_stage_in_which_a_serving_engine_died() -> None:
    log = ["INFO: Application startup complete.", f"{CORE}torch.OutOfMemoryError: CUDA out of memory."]
    assert "while answering requests" in said(diagnose(log, 1, "e.log"))


def test_a_request_that_failed_is_no_reason_to_end() -> None:
    log = ["INFO:     Application startup complete.", "ERROR:    Exception in ASGI application", *TRACEBACK]
    assert diagnose(log, 1, "e.log").message_id == "failure.unknown"
    assert diagnose(log, 137, "e.log").message_id == "failure.killed"


def test_the_tail_is_short() -> None:
    failure = diagnose([f"line {number}" for number in range(100)] + [""], 1, "/s/e.log")
    assert failure.log_tail == [f"line {number}" for number in range(70, 100)]


@pytest.mark.parametrize(
    ("line", "repeated"),
    [
        (f"Unknown attention backend: '{'A' * 300_000}'", 1),
        (f"{CORE}ValueError: {'A' * 300_000}", 1),
        ("(" * 50, 10_000),
        ("A" * 3000, 500),
        ("torch.x is not supported for quantization method y. Supported dtypes: [" * 50, 300),
    ],
    ids=["backend", "error", "brackets", "words", "list"],
)
def test_a_log_of_any_form_is_read(line: str, repeated: int) -> None:
    """Without bounds on what a pattern takes in, these would take minutes to hours."""
    failure = diagnose([line] * repeated, 1, "e.log")
    assert max(map(len, failure.log_tail)) <= LONGEST_LINE
    assert len(said(failure)) < 2 * LONGEST_LINE


def test_a_log_is_followed_line_by_line_and_cut(tmp_path: Path) -> None:
    log = tmp_path / "e.log"
    log.write_text("one\rtwo\nthr")
    tail = LogTail(log)
    assert tail.read() == ["one", "two"]
    with log.open("a") as file:
        file.write("ee\n" + "A" * 10_000)
        file.flush()
        assert tail.read() == ["three"]
        file.write("B" * 10_000 + "\nlast\n")
    assert tail.read() == ["A" * LONGEST_LINE, "last"]
    assert [line[:5] for line in tail.lines] == ["one", "two", "three", "AAAAA", "last"]


def test_a_long_log_is_read_at_both_ends(tmp_path: Path) -> None:
    """A log of 2.5 GB once was kept in memory whole."""
    log = tmp_path / "e.log"
    with log.open("wb") as file:
        file.write(b"first\n" * 6_000)
        file.truncate(10 * server.BLOCK)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"last\n" * 6_000)
    tail = LogTail(log)
    assert memory_of(tail.read) < 40 * server.BLOCK
    assert tail.lines == ["first"] * server.KEPT_LINES + ["last"] * server.KEPT_LINES


def memory_of(function: Callable[[], object]) -> int:
    """The most bytes that were in use while the function ran."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_log_that_was_shortened_is_read_on(tmp_path: Path) -> None:
    log = tmp_path / "e.log"
    log.write_text("one\ntwo\n")
    tail = LogTail(log)
    tail.read()
    log.write_text("one\n")
    assert tail.read() == []
    with log.open("a") as file:
        file.write("three\n")
    assert tail.read() == ["three"]


def test_the_source_in_a_traceback_is_no_message() -> None:
    log = ['  File "cpu.py", line 1, in f', '    raise ValueError(f"CUDA out of memory")', "ValueError: the cause"]
    assert diagnose(log, 1, "/s/e.log").params["detail"] == "ValueError: the cause"
