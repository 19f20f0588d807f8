"""Uploaded files don't stay."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import gradio as gr
import httpx
import pytest

from playground.config import Config
from playground.domain.limits import Limits
from playground.runs.host import Host
from playground.ui import page
from playground.ui.server import uploads
from playground.ui.server.server import Server, listen, served
from playground.ui.server.uploads import make_room


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "LEAST_BYTES", 5)


def test_the_oldest_make_room(tmp_path: Path) -> None:
    files = [tmp_path / name / "p.txt" for name in "abcd"]
    for age, file in enumerate(reversed(files)):
        file.parent.mkdir()
        file.write_bytes(b"x" * 10)
        os.utime(file, (1000 - age, 1000 - age))
    make_room(tmp_path, 25)
    assert [file.exists() for file in files] == [False, False, True, True]
    make_room(tmp_path, 25)
    assert files[2].exists()
    make_room(tmp_path / "none", 0)


def test_empty_files_count_too(tmp_path: Path) -> None:
    """And a folder goes with its last file."""
    for number in range(30):
        file = tmp_path / str(number // 3) / f"{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.utime(file, (number, number))
    make_room(tmp_path, 5 * 4)
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == [f"{number}.txt" for number in range(26, 30)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["8", "9"]


def test_all_together_have_a_limit(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    config = replace(config, limits=Limits(upload_bytes=1000, body_bytes=1000, uploads_bytes=13_000))
    with gr.Blocks() as blocks:
        gr.UploadButton()
    server = Server(listen(config.host, 0), served(Host(config), blocks))
    try:
        for number in range(10):
            sent = {"files": (f"{number}.txt", bytes([number]) * 900)}
            assert httpx.post(f"{server.url}/gradio_api/upload", files=sent).status_code == 200
        kept = [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()]
        assert {path.name for path in kept} >= {"9.txt"}
        assert sum(path.stat().st_size for path in kept) < 3000
    finally:
        server.close()


def test_the_page_deletes_them_after_a_while(config: Config) -> None:
    built = page.build(Host(config))
    assert built.delete_cache is not None
    assert max(built.delete_cache) <= 2 * 3600
