"""A run or sweep goes to another host and back without loss; what is none is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.finished_runs import RUNS
from support.measured_run import measured_run
from support.schema import check
from support.stored_runs import full_run, saved
from support.sweep_run import made_sweep

from playground.cli.main import main
from playground.config import Config
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.report.exports.files import exported
from playground.store import History

MADE = [*RUNS, full_run, measured_run, lambda: made_sweep("k=1,2,3", failed=(1,), left=(2,))]


@pytest.mark.parametrize("number", range(len(MADE)))
def test_without_loss(number: int, config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record: Run | Sweep = MADE[number]()
    if record.status == "running":
        record.status = "done"
    file, history = tmp_path / "record.json", History(config.db)
    file.write_text(exported(record, "json"), encoding="utf-8")
    # The machine of the full run is no real one.
    if record.id != "r1":
        check("sweep" if isinstance(record, Sweep) else "compare", json.loads(file.read_text(encoding="utf-8")))
    assert main(["import", str(file)]) == 0
    assert capsys.readouterr().out.strip() == record.id
    again = history.sweep(record.id) or history.get(record.id)
    assert again is not None
    assert exported(again, "json") == file.read_text(encoding="utf-8")
    assert [line.id for line in history.summaries()] == [record.id]
    assert main(["import", str(file)]) == 2
    assert "already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{}",
        '{"record": 1}',
        '{"record": {"run": {}}}',
        '{"record": {"sweep": {}, "points": []}}',
        "[" * 99999,
    ],
)
def test_what_is_none(text: str, config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    assert main(["import", str(file)]) == 2
    assert "x.json" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "none.json")]) == 2


def test_an_id_that_is_none(config: Config, tmp_path: Path) -> None:
    document = json.loads(exported(saved(History(config.db), measured_run()), "json"))
    file = tmp_path / "x.json"
    for change in ({"id": "../x"}, {"id": "new", "status": "running"}, {"id": "new", "mode": "imported"}):
        document["record"]["run"] |= change
        file.write_text(json.dumps(document), encoding="utf-8")
        assert main(["import", str(file)]) == 2


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("sides", 0, "side", "runtime_version"), 5),
        (("sides", 0, "trials", 0, "requests", 0, "prompt_tokens"), 10**30),
        (("sides", 0, "side", "label"), "\ud800"),
        (("run", "machine"), "[]"),
    ],
)
def test_a_damaged_value_is_no_crash(
    place: tuple[str | int, ...],
    value: object,
    config: Config,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its file is named, and the history can still be listed."""
    document = json.loads(exported(measured_run(), "json"))
    inner = document["record"]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    file = tmp_path / "damaged.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert main(["import", str(file)]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err
    assert main(["history", "list"]) == 0


def test_runs_of_a_sweep_are_checked_too(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(exported(made_sweep("k=1,2"), "json"))
    document["record"]["points"][0]["run"]["run"]["id"] = "x y/../z"
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert main(["import", str(file)]) == 2
    assert "sweep.json" in capsys.readouterr().err
