"""Recordings of other machines: documents of the shape that the command line prints today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.finished_runs import done
from support.schema import check
from support.sweep_run import made_sweep

from playground import presets
from playground.domain.errors import InvalidInput
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import say_message
from playground.report import recordings
from playground.report.documents.comparison import compare_document
from playground.report.exports.files import exported
from playground.report.sweep import sweep_document

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


@pytest.mark.parametrize("name", recordings.names())
def test_a_recording_says_the_same_once_it_is_read(name: str) -> None:
    """Rounds, figures and verdicts are those of the document; an answer is as long, and came when it came."""
    document: Any = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    record = recordings.load(name)
    again: Any
    if isinstance(record, Sweep):
        again = json.loads(json.dumps(sweep_document(SweepAnalysis.of(record))))
        for verdict in (
            verdict for said in (again, document) for point in said["points"] for verdict in point["verdicts"]
        ):
            # The rounds, which it follows from, are not in the document.
            verdict["reason"] = None
        for point in (*again["points"], *document["points"]):
            point["sides"] = {label: known(figures) for label, figures in point["sides"].items()}
        assert again["points"] == document["points"]
        assert again["recommended"]["values"] == document["recommended"]["values"]
    else:
        again = json.loads(json.dumps(compare_document(record)))
        assert (again["rounds"], again["verdicts"]) == (document["rounds"], document["verdicts"])
        for side, was in zip(again["sides"], document["sides"], strict=True):
            assert known(side["figures"]) == known(was["figures"])
            assert [request["chunks"] for request in side["requests"]] == [r["chunks"] for r in was["requests"]]
            assert [r["output_text"] for r in side["requests"]] == [r["output_text"] for r in was["requests"]]
    assert document["run_id"] in exported(record, "html")
    origin = " ".join(map(say_message, recordings.origin(record)))
    assert "Recorded on NVIDIA H200" in origin
    assert ("Random weights" in origin) == ("shaped" in name)
    assert recordings.headline_of(record) is not None


def test_what_is_recorded_today_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race with all that the history keeps of it, and a sweep as it is printed."""
    monkeypatch.setattr(recordings, "PLACE", tmp_path)
    race, sweep = done(), made_sweep("k=1,2,3")
    (tmp_path / "new.race.json").write_text(exported(race, "json"), encoding="utf-8")
    printed = sweep_document(SweepAnalysis.of(sweep))
    (tmp_path / "new.sweep.json").write_text(json.dumps(printed), encoding="utf-8")
    assert recordings.names() == ["new.race", "new.sweep"]
    assert recordings.load("new.race") == race
    again = recordings.load("new.sweep")
    assert isinstance(again, Sweep)
    assert (again.plan, again.case) == (sweep.plan, sweep.case)
    best = SweepAnalysis.of(again).recommendation
    assert best.values == SweepAnalysis.of(sweep).recommendation.values
    assert recordings.headline_of(again).speed_up == recordings.headline_of(sweep).speed_up
    recordings.load.cache_clear()


def known(figures: dict[str, object]) -> dict[str, object]:
    """A document lacks the figures that are younger than it."""
    return {name: value for name, value in figures.items() if value is not None}


def test_what_is_no_recording_is_refused() -> None:
    with pytest.raises(InvalidInput):
        recordings.load("../../pyproject")


def keeps_places_to_itself(document: object) -> bool:
    """Where another machine keeps its files is nobody's business."""
    text = json.dumps(document)
    return not any(f'"/{root}' in text or f" /{root}" in text for root in ("tmp", "home", "root"))
