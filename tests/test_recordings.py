"""Recordings of other machines: documents of the shape that the command line prints today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.schema import check

from playground import presets

FOLDER = presets.FOLDER / "recordings"
SWEEPS = sorted(FOLDER.glob("*.sweep.json"))
RECORDINGS = sorted(set(FOLDER.glob("*.json")) - set(SWEEPS))


def test_there_are_recordings() -> None:
    assert {path.name.rsplit(".", 2)[1] for path in RECORDINGS} == {"race", "measured"}
    assert SWEEPS


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recording(path: Path) -> None:
    document = check("compare", json.loads(path.read_text(encoding="utf-8")))
    assert document["status"] == "done"
    assert document["mode"] == path.name.rsplit(".", 2)[1]
    assert document["machine"]["gpus"]
    assert all(side["runtime"]["version"] and side["command"] for side in document["sides"])
    assert keeps_places_to_itself(document)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_recorded_sweep(path: Path) -> None:
    document = check("sweep", json.loads(path.read_text(encoding="utf-8")))
    assert document["synthetic"]
    assert all(point["verdicts"] for point in document["points"])
    assert keeps_places_to_itself(document)


def keeps_places_to_itself(document: object) -> bool:
    """Where another machine keeps its files is nobody's business."""
    text = json.dumps(document)
    return not any(f'"/{root}' in text or f" /{root}" in text for root in ("tmp", "home", "root"))
