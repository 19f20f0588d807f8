"""Charts, table, CSV and page of a sweep say what its results say."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest
from support.sweep_run import OUT_OF_MEMORY, base_case, made_sweep

from playground.domain.message import Message
from playground.domain.record.traces import Chunk
from playground.domain.speculation.theory import break_even_acceptance, step_cost
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.knob_text import parsed_knob
from playground.domain.sweep.record import Sweep
from playground.i18n import LOCALES, say, say_message
from playground.report.charts import Chart, sweep_charts
from playground.report.charts.knob_axis import KnobAxis
from playground.report.charts.pareto import pareto_front
from playground.report.exports.files import run_csv
from playground.report.html import sweep_html
from playground.report.sweep.table import COLUMNS, Cell, point_line, point_table, sweep_csv


def named(figure: Chart, name: str) -> dict[str, Any]:
    [found] = [trace for trace in figure["data"] if trace.get("name") == name]
    return dict(found)


def heat_of(figure: Chart) -> dict[str, Any]:
    [found] = [trace for trace in figure["data"] if trace["type"] == "heatmap"]
    return dict(found)


def charts_of(*knobs: str, **more: Any) -> tuple[Sweep, dict[str, Chart]]:
    sweep = made_sweep(*knobs, **more)
    return sweep, sweep_charts(SweepAnalysis.of(sweep), "en")


@pytest.mark.parametrize(("chart", "figure"), [("ttft", "ttft_ms"), ("tpot", "tpot_ms")])
def test_medians_over_rounds(chart: str, figure: str) -> None:
    sweep, charts = charts_of("k=1,4")
    for label in ("plain", "quick"):
        line = named(charts[chart], label)
        assert line["x"] == [1, 4]
        found = [side for point in SweepAnalysis.of(sweep).points if (side := point.side(label))]
        assert line["y"] == [side.medians[chart].value for side in found]
        # All rounds are alike within 2%, so the median over all requests is near.
        assert line["y"] == pytest.approx([getattr(side.figures, figure).p50 for side in found], rel=0.02)
        for side, above in zip(found, line["error_y"]["array"], strict=True):
            interval = side.medians[chart].interval
            assert interval is not None
            assert above == pytest.approx(interval[1] - (side.medians[chart].value or 0))


def test_the_objective_and_the_throughput() -> None:
    sweep, charts = charts_of("concurrency=1..16*4")
    found = [side for point in SweepAnalysis.of(sweep).points if (side := point.side("quick"))]
    assert named(charts["objective"], "quick")["y"] == [side.objective.value for side in found]
    rates = [side.figures.output_tokens_per_s for side in found]
    assert named(charts["throughput"], "quick")["y"] == pytest.approx(rates, rel=0.02)
    assert "throughput" not in charts_of("k=1", case=base_case(objective="throughput"))[1]


def test_speed_up_with_the_prediction_beside_it() -> None:
    sweep, charts = charts_of("k=1..5", failed=(3,))
    figure, predicted = charts["speed_up"], SweepAnalysis.of(sweep).predictions
    verdicts = [
        side.verdict for point in SweepAnalysis.of(sweep).points if (side := point.side("quick")) and side.verdict
    ]
    assert named(figure, "quick")["y"] == [verdict.speed_up for verdict in verdicts]
    fits = named(figure, "quick, predicted")
    assert fits["x"] == [1, 2, 3, 4, 5]
    assert fits["y"] == [predicted[number, "quick"].speed_up for number in range(5)]
    # By the law that the runs were made by a line is the truth: what is off is the noise.
    measured = [one for x, one in zip(fits["x"], fits["y"], strict=True) if x != 4]
    assert measured == pytest.approx(named(figure, "quick")["y"], rel=0.1)
    assert figure["layout"]["shapes"][0]["y0"] == 1


def test_one_measured_k_gives_a_range() -> None:
    sweep, charts = charts_of("k=2,5", left=(1,))
    band = named(charts["speed_up"], "quick, predicted range")
    interval = SweepAnalysis.of(sweep).predictions[1, "quick"].interval
    assert interval is not None
    assert band["x"] == [5]
    ends = band["y"][0] - band["error_y"]["arrayminus"][0], band["y"][0] + band["error_y"]["array"][0]
    assert ends == pytest.approx(interval)


def test_a_side_whose_k_stays_is_not_predicted_for_another_ones_k() -> None:
    case = base_case()
    third = case.sides[1].model_copy(update={"label": "third"})
    sweep = made_sweep("quick.k=1,2", case=case.model_copy(update={"sides": (*case.sides, third)}))
    assert {label for _, label in SweepAnalysis.of(sweep).predictions} == {"quick"}


def test_a_failed_point_is_marked_with_its_reason() -> None:
    sweep, charts = charts_of("k=1..3", failed=(1,))
    for name in ("speed_up", "objective", "ttft"):
        cross = named(charts[name], "failed")
        assert (cross["x"], cross["customdata"]) == ([2], [sweep.points[1].run and sweep.points[1].run.id])
        assert say_message(OUT_OF_MEMORY) in cross["text"][0]
        assert named(charts[name], "quick")["x"] == [1, 3]


def test_every_point_leads_to_its_run() -> None:
    sweep, charts = charts_of("k=1..3", left=(2,))
    runs = [point.run.id for point in sweep.points if point.run]
    for name in ("speed_up", "objective", "throughput", "ttft", "tpot", "trade_off_tpot", "acceptance"):
        made_up = (say("curve.front"), "quick, predicted", "quick, predicted range")
        traces = [trace for trace in charts[name]["data"] if trace["name"] not in made_up]
        assert traces
        for trace in traces:
            assert trace["customdata"] == runs
    # What was predicted of a point that has no run leads nowhere.
    assert named(charts["speed_up"], "quick, predicted")["customdata"] == [None]


def test_a_map_of_two_knobs() -> None:
    sweep, charts = charts_of("concurrency=1,16,32", "quick.k=1,2,8", failed=(1,))
    heat = heat_of(charts["speed_up_1"])
    for point in SweepAnalysis.of(sweep).points:
        column, row = divmod(point.number, 3)
        side = point.side("quick")
        assert heat["z"][row][column] == (side.verdict.speed_up if side and side.verdict else None)
        assert heat["customdata"][row][column] == point.run_id
        cell = heat_of(charts["objective_0"])["z"][row][column]
        assert cell == (point.sides[0].objective.value if point.sides else None)
    # The break-even line goes where both sides of 1 are; the failed point is a cross in its own cell.
    assert named(charts["speed_up_1"], "speed-up = 1")["z"] == heat["z"]
    values = [value for row in heat["z"] for value in row if value is not None]
    assert min(values) < 1 < max(values)
    cross = named(charts["objective_1"], "failed")
    assert (cross["x"], cross["y"]) == ([0], [1])
    foretold = heat_of(charts["predicted_1"])["z"]
    assert foretold[1][0] == SweepAnalysis.of(sweep).predictions[1, "quick"].speed_up
    assert not [trace for trace in charts["predicted_1"]["data"] if trace.get("name") == "failed"]


def test_a_predicted_range_is_said_in_its_cell() -> None:
    _, charts = charts_of("k=2,5", "concurrency=1,2")
    [words] = charts["predicted_1"]["data"]
    assert words["mode"] == "text"
    assert all("–" in text for text in words["text"])


def test_the_acceptance_that_pays() -> None:
    sweep, charts = charts_of("k=2,4")
    [series] = SweepAnalysis.of(sweep).series
    needed = [break_even_acceptance(point.k, step_cost(point)) for point in series.points.values()]
    assert named(charts["acceptance"], "quick, needed")["y"] == needed
    assert named(charts["acceptance"], "quick, measured")["y"] == pytest.approx([0.8, 0.8], abs=0.05)
    # Without k among the knobs: against the knob.
    _, charts = charts_of("concurrency=1,8")
    assert named(charts["acceptance"], "quick, needed")["x"] == [1, 8]


def test_the_pareto_front() -> None:
    assert pareto_front([(2, 10), (1, 5), (3, 9), (2, 8), (4, 20)]) == [(1, 5), (2, 10), (4, 20)]
    sweep, charts = charts_of("concurrency=1,4,16")
    figure = charts["trade_off_e2el"]
    every = [
        (side.medians["e2el"].value, side.throughput.value)
        for point in SweepAnalysis.of(sweep).points
        for side in point.sides
    ]
    front = list(zip(*(named(figure, "Pareto front")[axis] for axis in ("x", "y")), strict=True))
    assert set(front) < set(every)
    for latency, rate in set(every) - set(front):
        assert any(other[0] <= latency and other[1] >= rate for other in front)
    for trace in (named(figure, "plain"), named(figure, "quick")):
        places = zip(trace["x"], trace["y"], strict=True)
        assert [bool(text) for text in trace["text"]] == [place in front for place in places]


@pytest.mark.parametrize(
    ("typed", "kind", "places"),
    [
        ("k=1..4", "linear", [1, 2, 3, 4]),
        ("k=8,16,32,64", "log", [8, 16, 32, 64]),
        ("gpu_memory_utilization=0.85,0.9,0.95", "linear", [0.85, 0.9, 0.95]),
        ("dtype=auto,float32", "linear", [0, 1]),
        ("enforce_eager=on,off", "linear", [0, 1]),
        ("max_num_seqs=default,16", "linear", [0, 1]),
    ],
)
def test_axes(typed: str, kind: str, places: list[float]) -> None:
    knob = parsed_knob(typed)
    axis = KnobAxis(knob)
    assert axis.layout()["type"] == kind
    assert [axis.at(value) for value in knob.values] == places


@pytest.mark.parametrize("locale", LOCALES)
def test_nothing_measured_yet(locale: Any) -> None:
    for knobs in (("k=1..2",), ("k=1..2", "concurrency=1,2")):
        sweep = made_sweep(*knobs, left=tuple(range(4)))
        sweep.status = "running"
        charts = sweep_charts(SweepAnalysis.of(sweep), locale)
        assert charts
        for figure in charts.values():
            assert figure["data"] == []
            assert figure["layout"]["annotations"][0]["text"] == say("curve.nothing", locale)


def test_a_sweep_that_ended_without_a_point_has_no_charts() -> None:
    assert sweep_charts(SweepAnalysis.of(made_sweep("k=1..2", failed=(0, 1))), "en") == {}
    assert sweep_charts(SweepAnalysis.of(made_sweep("k=1..2", left=(0, 1))), "en") == {}
    assert sweep_charts(SweepAnalysis.of(made_sweep("k=1..2", failed=(0,))), "en")


def test_synthetic_figures_are_marked() -> None:
    _, charts = charts_of("quick.acceptance=0.3,0.6")
    assert all(say("curve.synthetic") in figure["layout"]["title"]["text"] for figure in charts.values())
    _, charts = charts_of("k=1")
    assert not any(say("curve.synthetic") in figure["layout"]["title"]["text"] for figure in charts.values())


def test_a_settled_point_is_read_once() -> None:
    sweep = made_sweep("k=1")
    [point] = sweep.points
    assert point.run is not None
    assert point.result() is point.result()
    # Another run is read anew, and over and over while it is under way.
    known = point.result()
    point.run = replace(point.run, id="another", status="running")
    assert point.result().run_id == "another"
    assert point.result() is not point.result()
    assert known.run_id != "another"


def test_the_table_and_the_csv() -> None:
    sweep = made_sweep("k=1..3", failed=(2,))
    headers, rows = point_table(SweepAnalysis.of(sweep), "en")
    assert [len(row) for row in rows] == [len(headers)] * 3
    assert rows[2][-1] == say_message(OUT_OF_MEMORY)
    lines = list(csv.DictReader(io.StringIO(sweep_csv(SweepAnalysis.of(sweep)))))
    assert [(line["k"], line["side"]) for line in lines][:3] == [("1", "plain"), ("1", "quick"), ("2", "plain")]
    quick = SweepAnalysis.of(sweep).points[0].side("quick")
    assert quick is not None
    assert quick.verdict is not None
    assert float(lines[1]["speed_up"]) == quick.verdict.speed_up
    assert float(lines[1]["tpot_ms_median"]) == quick.medians["tpot"].value
    assert lines[4]["value"] == ""
    assert lines[5]["problem"] == say_message(OUT_OF_MEMORY)
    assert float(lines[5]["predicted"]) == SweepAnalysis.of(sweep).predictions[2, "quick"].speed_up


def test_every_column_fills_its_heads() -> None:
    """Whether the side was measured or not, and for whoever reads it."""
    [point] = SweepAnalysis.of(made_sweep("quick.k=2")).points
    predicted = next(iter(SweepAnalysis.of(made_sweep("quick.k=1..3")).predictions.values()))
    for side in (None, *point.sides):
        for prediction in (None, predicted):
            cell = Cell("tpot", side, prediction)
            for column in COLUMNS:
                assert len(column.filled(cell)) == len(column.heads)
                assert column.heading is None or column.text(cell)


def test_a_points_line() -> None:
    sweep = made_sweep("k=1,2", failed=(1,))
    measured, failed = SweepAnalysis.of(sweep).points
    quick = measured.side("quick")
    assert quick is not None
    assert quick.verdict is not None
    line = point_line(sweep, measured, "ms")
    assert line.startswith("k = 1: plain ")
    assert f"quick {quick.objective.value:.3g} ms ({quick.verdict.speed_up:.2f}x, " in line
    assert point_line(sweep, failed, "ms") == f"k = 2: {say_message(OUT_OF_MEMORY)}"


def test_a_spreadsheet_computes_nothing() -> None:
    """Labels and answers may begin like a formula; a negative number stays one."""
    case = base_case()
    labels = ["=1+1", "@b"]
    sides = tuple(side.model_copy(update={"label": label}) for side, label in zip(case.sides, labels, strict=True))
    sweep = made_sweep("@b.k=1", "top_k=-1", case=case.model_copy(update={"sides": sides}))
    lines = list(csv.DictReader(io.StringIO(sweep_csv(SweepAnalysis.of(sweep)))))
    assert [(line["side"], line["'@b.k"], line["top_k"]) for line in lines] == [
        ("'=1+1", "1", "-1"),
        ("'@b", "1", "-1"),
    ]
    run = sweep.points[0].run
    assert run is not None
    run.sides[0].trials[0].requests[0].chunks[0] = Chunk(-0.5, 1, "-2+3")
    first, *_ = csv.DictReader(io.StringIO(run_csv(run)))
    assert (first["side"], first["text"], first["ms_since_send"]) == ("'=1+1", "'-2+3", "-0.5")


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("knobs", [("k=1,2",), ("k=1,2", "concurrency=1,2"), ("runtime=default,<b>",)])
def test_the_exported_page(locale: Any, knobs: tuple[str, ...]) -> None:
    sweep = made_sweep(*knobs, failed=(1,))
    sweep.problem = Message("sweep.budget_spent", {"left": 1})
    page = sweep_html(sweep, locale)
    figures = sweep_charts(SweepAnalysis.of(sweep), locale)
    assert page.count('class="chart"') == len(figures)
    # plotly's own classes take every figure.
    assert all(go.Figure(figure).data for figure in figures.values())
    assert say("sweep.budget_spent", locale, left=1) in page
    assert "<td><b></td>" not in page
