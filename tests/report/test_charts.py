"""Charts of a measured run say what its verdict says; nothing unknown is drawn as a number."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

import pytest
from support.finished_runs import done
from support.measured_run import measured_run

from playground.domain.message import Message
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.i18n import LOCALES, say, say_message
from playground.report.charts import charts_of, informative, outcomes, over_time
from playground.report.charts.race import speed_over_time
from playground.report.conclusions import conclusions
from playground.report.html import html_report
from playground.report.tables import errors, tables


def named(figure: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [trace for trace in figure["data"] if trace.get("name") == name and trace.get("showlegend", True)]
    return dict(found)


def test_the_latest_interval_is_the_verdicts() -> None:
    run = measured_run()
    [verdict] = run_verdicts(run, rounds_of(run))
    assert verdict.interval is not None
    figure = outcomes(run, "en")["speed_up"]
    so_far = named(figure, "quick, so far")
    assert so_far["x"] == [1, 2, 3, 4, 5, 6]
    assert so_far["y"][-1] == pytest.approx(verdict.speed_up)
    bar = so_far["error_y"]
    low, high = so_far["y"][-1] - bar["arrayminus"][-1], so_far["y"][-1] + bar["array"][-1]
    assert (low, high) == pytest.approx(verdict.interval)
    assert named(figure, "95% interval")["y"] == [pytest.approx(verdict.interval[1])]
    # Every round's own ratio, about 2; and how narrow it is to become.
    assert named(figure, "one round")["y"] == pytest.approx([2.0] * 6, rel=0.05)
    assert named(figure, "±5% requested")["y"] == pytest.approx([verdict.speed_up * 1.05] * 2)


def test_the_interval_narrows() -> None:
    """From the sixth round on it is drawn, and the band of each further round is another point."""
    few, more = (outcomes(measured_run(rounds), "en")["speed_up"] for rounds in (5, 6))
    assert [trace for trace in few["data"] if trace.get("name") == "95% interval"] == []
    assert "error_y" not in named(few, "quick, so far")
    assert "error_y" in named(more, "quick, so far")


def test_the_objective_by_round() -> None:
    run = measured_run()
    figure = outcomes(run, "en")["by_round"]
    assert named(figure, "plain")["y"] == [each.values["plain"] for each in rounds_of(run)]
    assert figure["layout"]["yaxis"]["title"]["text"] == "TPOT, ms"


def test_distributions_are_cumulative_and_mark_the_limit() -> None:
    figure = outcomes(measured_run(limits={"tpot_ms": 15}), "en")["tpot_share"]
    line = named(figure, "quick")
    assert line["y"][0] == 0
    assert line["y"][-1] == 1
    assert line["x"] == sorted(line["x"])
    assert (line["x"][0], line["x"][-1]) == pytest.approx((9.8, 10.2))
    [limit] = figure["layout"]["shapes"]
    assert limit["x0"] == 15


def test_a_race_of_less_than_a_second_shows_its_speed() -> None:
    run = done()
    side = run.sides[0]
    chunks = side.trials[0].requests[0].chunks
    last_s = chunks[-1].ms / 1000
    assert last_s < 1
    line = speed_over_time(run.sides, "en")["data"][0]
    assert line["y"][-1] == pytest.approx(sum(chunk.tokens or 0 for chunk in chunks) / last_s, rel=0.001)


def test_over_time_comes_from_the_samples() -> None:
    run = measured_run()
    figures = over_time(run, "en")
    # 50 tokens in half a second; a side's first sample in a turn has nothing before it, turns are not joined.
    assert named(figures["sampled_speed"], "plain")["y"][:4] == [None, 100.0, None, None]
    assert set(named(figures["kv_cache"], "plain")["y"]) == {0.25, None}
    assert named(figures["queues"], "plain · waiting")["line"]["dash"] == "dot"
    hits = [rate for rate in named(figures["prefix_hits"], "quick")["y"] if rate is not None]
    assert hits == [0.5] * 12


def test_gpus_have_charts_where_there_are_some() -> None:
    run = measured_run()
    assert not {"gpu_utilization", "gpu_memory"} & over_time(run, "en").keys()
    for side in run.sides:
        side.samples = [
            replace(one, counters=replace(one.counters, gpu_utilization=0.5, gpu_memory_bytes=3 * 2**30))
            for one in side.samples
        ]
    figures = over_time(run, "en")
    assert set(named(figures["gpu_utilization"], "plain")["y"]) == {0.5, None}
    assert set(named(figures["gpu_memory"], "quick")["y"]) == {3.0, None}


def test_what_the_engine_does_not_report_is_said() -> None:
    run = measured_run()
    for side in run.sides:
        side.samples = [type(one)(one.ms, type(one.counters)()) for one in side.samples]
    for figure in over_time(run, "en").values():
        assert figure["data"] == []
        assert figure["layout"]["annotations"][0]["text"] in (say("chart.unreported"), say("chart.no_lookups"))


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("locale", LOCALES)
def test_nothing_measured_yet(rounds: int, locale: Any) -> None:
    run = measured_run(rounds)
    run.status = "running"
    figures = charts_of(run, locale)
    if not rounds:
        assert all(figure["data"] == [] and figure["layout"]["annotations"] for figure in figures.values())
    assert "nan" not in str(figures).lower()


def test_tables_hold_every_side() -> None:
    found = tables(measured_run(broken=True, limits={"tpot_ms": 15}))
    by_name = {row.name: row.cells for row in (*found.distributions, *found.single)}
    assert [cells[-1] for cells in by_name["TPOT"]] == ["12", "12"]
    assert by_name["TPOT"][0][0] == "20"
    assert by_name["acceptance"] == [["-"], ["50%"]]
    assert by_name["failed requests"] == [["0"], ["1"]]
    assert by_name["goodput, requests/s"][0] == ["0"]
    assert all(row.definition for row in (*found.distributions, *found.single))


def test_a_trial_under_way_is_left_out() -> None:
    """Its slowest requests have not ended yet: a mean over the rest would flatter."""
    run = measured_run()
    run.status = "running"
    run.sides[0].trials[-1].complete = False
    assert tables(run).distributions[0].cells[0][-1] == "10"


def test_errors_are_said_once_a_kind() -> None:
    run = measured_run(broken=True)
    assert errors(run.sides[0].requests) == []
    assert errors(run.sides[1].requests) == [f"1 × {say('stream.cut')}"]


@pytest.mark.parametrize("rounds", [0, 6])
def test_the_exported_page_says_what_went_wrong(rounds: int) -> None:
    run = measured_run(rounds)
    run.sides[1].problem = Message("failure.killed", {"code": 137})
    run.problem = Message("run.side_failed", {"side": "quick", "cause": run.sides[1].problem})
    run.status = "failed"
    page = html_report(run)
    assert escape(say_message(run.problem)) in page
    assert page.count(escape(say_message(run.sides[1].problem))) == 2


@pytest.mark.parametrize("locale", LOCALES)
def test_the_exported_page(locale: Any) -> None:
    page = html_report(measured_run(), locale)
    assert "2.00" in page
    assert say("figure.itl_ms_help", locale) in page
    # The answer first, and charts without the library: a page to mail.
    headline = next(item for item in conclusions(measured_run()) if item.kind == "headline")
    assert f"<h1>{escape(say_message(headline.sentence, locale))}</h1>" in page
    said, silent = informative(charts_of(measured_run(), locale))
    assert page.count('class="chart"') == len(said)
    assert silent
    assert all(title in page for title in silent)
    assert "<script" not in page
    assert len(page) < 400_000
