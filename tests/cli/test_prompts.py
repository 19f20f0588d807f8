"""The command line's `prompts`: one document, sentences, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.schema import check

from playground.cli.main import main

TEXT = """{"prompt": "one"}
{"prompt": " "}
{"messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content": "x"}]}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["prompts", *arguments])
    return code, *capsys.readouterr()


def test_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text(TEXT)
    code, out, _ = run(capsys, str(tmp_path / "a.jsonl"), "--json")
    document = check("prompts", json.loads(out))
    assert code == 0
    assert (document["read"], document["sampled"], document["first"]) == (2, 2, ["one", "two"])
    assert document["skipped"] == [{"where": "line 2", "why": "the prompt is blank"}]
    assert document["skipped_counts"] == [{"why": "the prompt is blank", "count": 1}]
    assert [changed["where"] for changed in document["changed"]] == ["line 3"]


def test_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text(TEXT)
    code, out, _ = run(capsys, str(tmp_path / "a.jsonl"))
    assert code == 0
    assert "Prompts read: 2." in out
    assert "Skipped: 1 (the prompt is blank), first at line 2." in out


def test_a_built_in_set(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "short", "--json")
    document = check("prompts", json.loads(out))
    assert (code, document["read"], document["skipped"]) == (0, 10, [])


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("prompt\nHello, world\n")
    code, out, error = run(capsys, str(tmp_path / "a.csv"), "--json")
    document = check("prompts", json.loads(out))
    assert code == 2
    assert document["problem"]["id"] == "prompts.too_many_cells"
    assert (document["read"], document["first"]) == (0, [])
    assert "line 2" in error
