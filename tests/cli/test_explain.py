"""The command line's `explain`: one document, sentences, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.explained import CASES
from support.schema import check

from playground.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["explain", *arguments])
    return code, *capsys.readouterr()


def test_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "engine.log"
    for name, case in CASES.items():
        path.write_text(case["log"], encoding="utf-8")
        code, out, _ = run(capsys, str(path), "--json")
        assert (code, check("explanation", json.loads(out))["cause"]) == (0, case.get("cause")), name


def test_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "engine.log"
    path.write_text(CASES["settings/eagle-width"]["log"], encoding="utf-8")
    code, out, _ = run(capsys, str(path))
    assert code == 0
    assert "drafter does not go with the target" in out
    assert "8, 10" in out
    assert "  - Switch speculation off" in out
    path.write_text(CASES["ends/healthy"]["log"], encoding="utf-8")
    assert run(capsys, str(path))[:2] == (
        0,
        "No failure in this log: the engine started, and nothing failed afterwards.\n",
    )


def test_what_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "engine.log"
    for content in (b"", bytes(range(256)), b"# A page\n"):
        path.write_bytes(content)
        code, out, err = run(capsys, str(path))
        assert (code, out) == (2, "")
        assert err.startswith("engine.log: ")
    code, _, err = run(capsys, str(tmp_path))
    assert code == 2
    assert "can't be read" in err
