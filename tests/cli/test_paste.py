"""The command line's `paste`: one document, sentences, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.schema import check

from playground.cli.main import main
from playground.domain.vllm_cli import paste

TEXT = "$ HF_TOKEN=hf_secret vllm serve org/x -tp 2 -ep --swap-space 4 --max-model 8k\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["paste", *arguments])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_document(tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    path = tmp_path / "command.txt"
    path.write_text(TEXT, encoding=encoding)
    code, out, _ = run(capsys, str(path), "--json")
    document = check("paste", json.loads(out))
    assert code == 0
    assert document["settings"] == {
        "target": "org/x",
        "speculation": {"method": "off"},
        "knobs": {"tensor_parallel_size": 2, "max_model_len": 8000},
        "trust_remote_code": False,
        "extra_flags": ["-ep"],
    }
    assert [left["what"] for left in document["left_out"]] == ["$", "HF_TOKEN", "--swap-space 4"]
    assert document["problem"] is None
    assert "secret" not in out


def test_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same as on the page."""
    path = tmp_path / "command.txt"
    path.write_text(TEXT, encoding="utf-8")
    code, out, _ = run(capsys, str(path))
    assert code == 0
    assert 'knobs = {"max_model_len": 8000, "tensor_parallel_size": 2}' in out
    assert "- --max-model was read as --max-model-len" in out
    assert "- Left out: HF_TOKEN." in out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "paste.empty"),
        (b"ls -l", "paste.no_program"),
        (b"vllm serve $MODEL", "paste.shell"),
        (b"ok\n\xff\xfe\x00", "text.no_text"),
        (b"x" * (4 * paste.LONGEST + 1), "text.too_large"),
        (b"x" * (paste.LONGEST + 1), "paste.too_long"),
    ],
)
def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, problem: str) -> None:
    path = tmp_path / "command.txt"
    path.write_bytes(content)
    code, out, err = run(capsys, str(path), "--json")
    document = check("paste", json.loads(out))
    assert code == 2
    assert document["settings"] is None
    assert document["problem"]["id"] == problem
    assert document["problem"]["message"] in err


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, str(tmp_path / "none"))
    assert (code, out) == (2, "")
    assert "none can't be read" in err
