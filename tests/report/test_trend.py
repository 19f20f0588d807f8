"""A preset's figure across its runs, and what changed between them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from support.finished_runs import done
from support.measured_run import measured_run
from support.schema import check
from support.stored_runs import saved

from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import Ngram
from playground.report.charts import svg
from playground.report.trend.chart import trend_chart, trend_text
from playground.report.trend.trend import Trend
from playground.store import History


def measured(day: int, version: str = "0.31.0", seqs: int = 5, **machine: object) -> Run:
    run = measured_run()
    run.id, run.created_at, run.preset = f"run-{day:02}", f"2026-08-{day:02}T10:00:00+00:00", "p"
    run.machine = {"cpu": "a processor", **machine}
    for side in run.sides:
        side.runtime_version = version
    run.sides[1].settings = EngineSettings(target="m", speculation=Ngram(), knobs=Knobs(max_num_seqs=seqs))
    return run


def test_runs_that_did_not_end_have_no_place_in_it(history: History) -> None:
    """Neither what failed or was stopped, nor another tool's results among races; no preset has none."""
    for number, status in enumerate(("done", "stopped", "failed")):
        race = done()
        race.id, race.preset, race.status = f"race-{number}", "p", status
        saved(history, race)
    assert len(Trend.of(history, "p").points) == 1
    with pytest.raises(InvalidInput):
        Trend.of(history, "")


@pytest.fixture
def history(config: Config) -> History:
    history = History(config.db)
    history.open()
    return history


def test_changes_are_marked_where_they_happened(
    history: History, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    card = [{"name": "a card", "total_bytes": 1}]
    for run in (
        measured(1),
        measured(2),
        measured(4, "0.32.0"),
        measured(5, "0.32.0", seqs=8),
        measured(6, "0.32.0", seqs=8, gpus=card, driver="550"),
        measured(7, "0.32.0", seqs=8, gpus=card, driver="560"),
        # Of another preset, or without a verdict.
        replace(measured(8), preset="q"),
        replace(done(), preset="p"),
    ):
        saved(history, run)
    trend = Trend.of(history, "p")
    assert [point.run_id for point in trend.points] == [f"run-{day:02}" for day in (1, 2, 4, 5, 6, 7)]
    assert [(change.at, change.kind, change.before, change.after) for change in trend.changes] == [
        (2, "version", "0.31.0", "0.32.0"),
        (3, "settings", None, None),
        (4, "machine", "a processor", "a card"),
        (5, "driver", "550", "560"),
    ]
    assert trend.changes[1].keys == ("B.knobs.max_num_seqs",)
    assert trend_text(trend) == (
        "2.00x to 2.00x over 6 runs; B.knobs.max_num_seqs changed on 2026-08-05; "
        "a processor -> a card on 2026-08-06; driver 550 -> 560 on 2026-08-07"
    )
    assert "6 次运行" in trend_text(trend, "zh-CN")
    drawn = svg(trend_chart(trend, "en"))
    assert drawn.count("<circle") == 6
    assert drawn.count("stroke-dasharray") >= 4
    assert main(["history", "trend", "p", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    check("trend", document)
    assert [change["run_id"] for change in document["changes"]] == ["run-04", "run-05", "run-06", "run-07"]
    assert main(["history", "trend", "p"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert "vLLM 0.31.0 -> 0.32.0" in lines[3]


def test_races_have_a_speed(history: History) -> None:
    for day in (1, 2):
        saved(history, replace(done(), id=f"race-{day}", created_at=f"2026-08-0{day}T10:00:00+00:00", preset="p"))
    trend = Trend.of(history, "p")
    assert trend.figure == "output_tokens_per_s"
    assert "tokens/s over 2 runs" in trend_text(trend)


@pytest.mark.parametrize("preset", ["p", "no such preset"])
def test_nothing_to_draw(history: History, preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    values: dict[str, Any] = {"id": "r", "preset": "p", "sides": []}
    saved(history, replace(done(), **values))
    assert main(["history", "trend", preset]) == 2
    assert preset in capsys.readouterr().err
