"""The answer says as much as was seen, and no more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.finished_runs import done, failed, stopped, uncounted
from support.measured_run import measured_run

from playground.config import Config
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.run import Run
from playground.domain.stats.reasons import Reason
from playground.domain.stats.verdicts import Verdict
from playground.i18n import LOCALES, say, say_message
from playground.report.answer import answers_of, race_sentences, sureness, unlike
from playground.report.answer.html import answer_html
from playground.report.charts import informative, over_time, svg
from playground.report.findings import findings
from playground.report.html import html_report
from playground.report.tables import tables
from playground.ui.shared.view import painter


@pytest.mark.parametrize(
    ("run", "ratios", "interval", "sure"),
    [
        (measured_run(), [2.0], True, "sure"),
        (measured_run(2), [1.98], False, "not_yet"),
        (measured_run(0), [], False, ""),
        (done(), [2.67], False, "one_race"),
        (uncounted(), [], False, ""),
        (failed(), [], False, ""),
    ],
)
def test_a_number_and_how_sure_it_is(run: Run, ratios: list[float], interval: bool, sure: str) -> None:
    answers = answers_of(run)
    assert [answer.ratio for answer in answers] == pytest.approx(ratios, rel=0.01)
    for locale in LOCALES:
        page = answer_html(run, locale)
        assert ("<svg" in page) == interval
        assert bool(page) == bool(ratios)
        assert not sure or say(f"answer.{sure}", locale) in page


def test_no_difference_is_said_only_once_the_interval_is_narrow() -> None:
    verdict = Verdict("b", "a", "tpot", "no clear difference", 1.01, (0.99, 1.03), 6)
    assert sureness(replace(verdict, reason=Reason("no_difference_above", {"percent": 3.0}))) == "no_difference"
    assert sureness(replace(verdict, reason=Reason("more_rounds", {"needed": 4}))) == "not_yet"
    assert sureness(replace(verdict, verdict="slower")) == "sure"


def test_a_race_gives_an_observation_and_no_verdict() -> None:
    [sentence] = race_sentences(done())
    assert "in this one race" in say_message(sentence)
    assert race_sentences(stopped()) == []


def test_what_differs_besides_the_settings() -> None:
    run = done()
    assert unlike(run) == []
    run.sides[1].runtime_version = "0.31.0"
    [message] = unlike(run)
    assert "vLLM 0.32.0 | vLLM 0.31.0" in say_message(message)


def test_the_four_figures_that_matter_come_first() -> None:
    key = tables(measured_run()).key
    assert [row.name for row in key] == ["TPOT", "TTFT", "output tokens/s", "acceptance"]
    assert key[0].cells == [["20 ms"], ["10 ms"]]


def test_percentiles_need_values_to_be_percentiles_of() -> None:
    """Twelve requests a side: their 90th percentile is one of them, their 99th is just the largest."""
    row = tables(measured_run()).distributions[0]
    mean, p50, p90, p95, p99, n = row.cells[0]
    assert "-" not in (mean, p50, p90)
    assert (p95, p99, n) == ("-", "-", "12")


def test_a_flat_line_is_left_out_with_its_title() -> None:
    figures = over_time(measured_run(), "en")
    kept, silent = informative(figures)
    assert "preemptions" not in kept
    assert figures["preemptions"]["layout"]["title"]["text"] in silent
    assert all(svg(figure).startswith("<svg") for figure in figures.values())


def test_what_nobody_set_is_said_beside_the_verdict() -> None:
    """On an H200 with vLLM 0.26 the draft's side had neither; the ratio contains both."""
    run = measured_run()
    assert unlike(run) == []
    run.sides[0].path = EnginePath(model_runner="V2", async_scheduling=True, kv_cache_tokens=299_584)
    run.sides[1].path = EnginePath(model_runner="V1", async_scheduling=False, kv_cache_tokens=209_712)
    [sentence] = unlike(run)
    assert say_message(sentence) == (
        "Part of the difference between quick and plain may come from what vLLM chose by itself: "
        "asynchronous scheduling (on / off), model runner (V2 / V1)."
    )
    [finding] = [finding for finding in findings(run) if finding.rule == "unset_path"]
    assert finding.side == "quick"
    assert "Off, same path" in say_message(finding.remedy)
    for locale in LOCALES:
        painted = json.loads(painter(Config(), run, locale).paint(whole=True))
        assert say_message(sentence, locale) in painted["note"]
        for page in (html_report(run, locale), painted["deploy"][1]):
            assert say("path.async_scheduling", locale) in page
            assert "209,712" in page
