"""Recordings of other machines: documents of the shape that the command line prints today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_schema import check

from playground import presets

RECORDINGS = sorted((presets.FOLDER / "recordings").glob("*.json"))


def test_there_are_recordings() -> None:
    assert {path.name.rsplit(".", 2)[1] for path in RECORDINGS} == {"race", "measured"}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recording(path: Path) -> None:
    document = check("compare", json.loads(path.read_text(encoding="utf-8")))
    assert document["status"] == "done"
    assert document["mode"] == path.name.rsplit(".", 2)[1]
    assert document["machine"]["gpus"]
    assert all(side["runtime"]["version"] and side["command"] for side in document["sides"])
    # Where another machine keeps its files is nobody's business.
    assert not any(
        f'"/{root}' in str(document) or f" /{root}" in str(document) for root in ("tmp", "home", "root")
    )
