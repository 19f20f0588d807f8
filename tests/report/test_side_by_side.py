"""Runs beside each other: what differs, ratios with intervals where there are rounds, and why not to compare."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.finished_runs import done, failed
from support.measured_run import measured_run
from support.schema import check
from support.stored_runs import saved

from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.run import Run
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.report.charts import overlaid, svg
from playground.report.documents.side_by_side import side_by_side_document
from playground.report.side_by_side import SideBySide
from playground.report.side_by_side.text import conclusion
from playground.store import History


def slower(by: float = 1.2) -> Run:
    """The measured run again, with every token this many times as late."""
    run = measured_run()
    run.id = "20261130-120000-beef"
    for side in run.sides:
        for trace in side.requests:
            trace.chunks = [replace(chunk, ms=chunk.ms * by) for chunk in trace.chunks]
    return run


def warned(*runs: Run) -> set[str]:
    return {warning.message_id.removeprefix("beside.") for warning in SideBySide.of(runs).warnings}


def test_a_repetition_agrees_or_has_changed() -> None:
    same = SideBySide.of([measured_run(), slower(1.0)])
    assert same.changes.agreement == "agrees"
    assert same.differences == []
    assert conclusion(same) == (
        "No change since 2026-11-29 12:00: quick against plain 2.00x (1.98-2.01) then, 2.00x (1.98-2.01) now."
    )
    later = slower()
    later.sides[1].runtime_version = "0.33.0"
    changed = SideBySide.of([measured_run(), later])
    assert changed.changes.agreement == "changed"
    said = conclusion(changed)
    assert "plain 20.0 ms a token (19.9-20.1) then, 24.0 (23.8-24.2) now, worse by 20%" in said
    # What only one of them knows is no change.
    assert "vLLM of B" not in said
    earlier = measured_run()
    earlier.sides[1].runtime_version = "0.32.0"
    assert "What is not the same: vLLM of B 0.32.0 → 0.33.0." in conclusion(SideBySide.of([earlier, later]))
    [tpot] = [row for row in changed.rows if row.figure == "tpot_ms" and row.labels[0] == "plain"]
    [ratio] = tpot.ratios
    assert ratio is not None
    assert ratio.interval is not None
    assert ratio.interval[0] < 1.2 < ratio.interval[1]
    # Both sides are slower by the same: the speed-up is as before.
    [speed_up] = [row for row in changed.rows if row.figure == "speed_up"]
    assert speed_up.ratios[0] is not None
    low, high = speed_up.ratios[0].interval or (2.0, 2.0)
    assert low <= 1 <= high


def test_what_differs() -> None:
    first, second = measured_run(), measured_run()
    second.sides[1].settings = EngineSettings(target="m", knobs=Knobs(max_num_seqs=4))
    second.sides[1].runtime_version = "0.33.0"
    differing = {item.key: item.values for item in SideBySide.of([first, second]).differences}
    assert differing["B.knobs.max_num_seqs"] == (None, "4")
    assert differing["B.runtime_version"] == (None, "0.33.0")
    assert not any(key.startswith("A.") for key in differing)


def test_why_not_to_compare() -> None:
    assert warned(measured_run(), slower()) == set()
    assert {"modes", "prompts", "machines", "no_interval", "contended"} <= warned(measured_run(), done())
    assert "unended" in warned(done(), failed())
    race = SideBySide.of([done(), done()])
    assert race.changes.agreement == "unknown"
    assert all(ratio is None or ratio.interval is None for row in race.rows for ratio in row.ratios)
    with pytest.raises(InvalidInput):
        SideBySide.of([done()])


@pytest.mark.parametrize("runs", [(measured_run, slower), (done, failed), (measured_run, done, failed)])
def test_document(runs: tuple[object, ...]) -> None:
    made = [run() for run in runs]  # type: ignore[operator]
    check("side_by_side", side_by_side_document(SideBySide.of(made)))


def test_command_line(config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = History(config.db)
    ids = [saved(history, run).id for run in (measured_run(), slower())]
    assert main(["history", "compare", *ids]) == 0
    printed = capsys.readouterr().out
    assert "Changed since 2026-11-29 12:00" in printed
    assert "1.2" in printed
    assert main(["history", "compare", ids[0], "nowhere"]) == 2
    assert main(["history", "backup", str(tmp_path / "copy.db")]) == 0
    assert main(["history", "backup", str(tmp_path / "copy.db")]) == 2
    assert main(["history", "prune"]) == 2
    assert main(["history", "prune", "--older-than", "0d"]) == 0
    assert history.summaries() == []
    assert len(History(tmp_path / "copy.db").summaries()) == 2
    for bad in (["--older-than", "-1"], ["--larger-than", "2X"]):
        with pytest.raises(SystemExit):
            main(["history", "prune", *bad])


@pytest.mark.usefixtures("fake_runtime")
def test_a_run_is_repeated(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    history = History(config.db)
    earlier = saved(history, done())
    for side in earlier.sides:
        side.settings = EngineSettings(target="model")
    history.finish(earlier)
    assert main(["compare", "--from-run", earlier.id, "--json"]) == 0
    document = check("side_by_side", json.loads(capsys.readouterr().out))
    assert document["run_ids"][0] == earlier.id
    again = history.get(document["run_ids"][1])
    assert again is not None
    assert (again.settings, again.workload, again.seed) == (earlier.settings, earlier.workload, earlier.seed)
    assert again.earlier == earlier.id
    assert main(["compare", "--from-run", earlier.id, "--prompt", "x"]) == 2
    before = len(History(config.db).summaries())
    assert main(["compare", "--from-run", earlier.id, "--plan"]) == 0
    assert len(History(config.db).summaries()) == before, "nothing starts"
    assert main(["compare", "--from-run", "nowhere"]) == 2


def test_charts_that_both_have_are_overlaid() -> None:
    runs = [measured_run(), slower()]
    drawn = overlaid(runs, ["first", "<second>"], "en")
    assert list(drawn)[:2] == ["speed_up", "by_round"]
    lines = {trace["name"]: (trace["line"]["color"], trace["line"]["dash"]) for trace in drawn["by_round"]["data"]}
    assert lines["quick · first"][0] == lines["quick · &lt;second&gt;"][0] != lines["plain · first"][0]
    assert lines["quick · first"][1] != lines["quick · &lt;second&gt;"][1]
    for figure in drawn.values():
        assert "<second>" not in svg(figure)
    # A race has no rounds: what only one of them has is not drawn.
    assert set(overlaid([*runs, done()], ["a", "b", "c"], "en")) <= {"per_position"}


def test_another_path_is_no_other_setting() -> None:
    """The same settings with a newer vLLM: what its engine does otherwise is named, and compared all the same."""
    runs = [measured_run(), measured_run()]
    for run, scheduling, tokens in zip(runs, (False, True), (1000, 1001), strict=True):
        run.sides[1].path = EnginePath(async_scheduling=scheduling, kv_cache_tokens=tokens)
    beside = SideBySide.of(runs)
    assert [item.key for item in beside.differences] == ["B.path.async_scheduling"]
    assert beside.repetition
