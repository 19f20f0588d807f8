"""From a sweep's results to the setting to deploy: the best, nothing, or speculation off."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sweep_run
from sweep_run import made_sweep

from playground.config import Config
from playground.domain.recommendation import best_by_circumstance, recommendation, recommended_side
from playground.domain.records import Problem
from playground.domain.settings import EngineSettings, Ngram
from playground.domain.speculation import SpeculationPoint, known_cost, measured_point
from playground.domain.sweep_results import results
from playground.sweep_report import conclusions_of
from playground.text import LOCALES, say_problem
from playground.ui.sweep_painter import SweepPainter


@pytest.fixture
def slow_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draft costs more than it brings."""
    monkeypatch.setattr(sweep_run, "PER_DRAFT", 4.0)


def test_the_best_k_and_what_deploys_it(config: Config) -> None:
    sweep = made_sweep("quick.k=1,2,4,8")
    best = recommendation(sweep)
    assert isinstance(best.values, tuple)
    side = recommended_side(sweep)
    assert side is not None
    assert isinstance(side.settings, EngineSettings)
    assert side.settings.speculation == Ngram(num_speculative_tokens=best.values[0])
    for locale in LOCALES:
        painted = SweepPainter(config, sweep, locale).paint()
        assert painted is not None
        assert "vllm serve m" in painted[0]


@pytest.mark.usefixtures("slow_drafts")
@pytest.mark.parametrize(
    "knobs", [("quick.k=1,2,4",), ("quick.prompt_lookup_max=2,3",), ("k=1,2", "prompt_lookup_max=2,3")]
)
def test_nothing_slower_than_the_baseline_is_recommended(knobs: tuple[str, ...]) -> None:
    sweep = made_sweep(*knobs)
    assert recommendation(sweep).values == "off"
    side = recommended_side(sweep)
    assert side is not None
    assert side.label == "plain"


def test_equal_points_are_not_told_apart() -> None:
    """Nothing in the made-up engines depends on it."""
    best = recommendation(made_sweep("max_num_seqs=1,2,4"))
    assert best.reason.message_id == "sweep.best_unsure"


def test_a_point_without_an_interval_may_be_as_good() -> None:
    sweep = made_sweep("quick.prompt_lookup_max=2,3")
    short = made_sweep("quick.prompt_lookup_max=2,3", rounds=3)
    sweep.points[1] = short.points[1]
    assert recommendation(sweep).reason.message_id == "sweep.best_unsure"


def test_a_withheld_verdict_is_no_reason_to_recommend() -> None:
    [result] = results(made_sweep("quick.k=3"))
    side = result.of("quick")
    assert side is not None
    assert side.verdict is not None
    sound = measured_point(3, 1, side.verdict, side.figures)
    moving = replace(side.verdict, verdict="no clear difference", reason=Problem("verdict.ratio_moves"))
    withheld = measured_point(3, 1, moving, side.figures)
    assert sound is not None
    assert sound.interval is not None
    assert withheld is not None
    assert withheld.interval is None


def test_what_is_best_depends_on_a_circumstance() -> None:
    sweep = made_sweep("quick.k=1,4", "concurrency=1,8")
    assert recommendation(sweep).reason.message_id == "sweep.depends"
    told = [sentence.params["under"] for sentence in best_by_circumstance(sweep)]
    assert told == ["concurrency = 1", "concurrency = 8"]
    for locale in LOCALES:
        assert all(say_problem(sentence, locale) for sentence in conclusions_of(sweep))


def test_a_circumstance_alone_recommends_nothing() -> None:
    best = recommendation(made_sweep("concurrency=1,4"))
    assert (best.values, best.reason.message_id) == (None, "sweep.circumstance")


@pytest.mark.parametrize(
    ("coverage", "speed_up", "known"), [(0.05, 1.08, False), (0.2, 1.05, True), (1.0, 9.0, True)]
)
def test_a_cost_that_noise_makes_is_not_told(coverage: float, speed_up: float, known: bool) -> None:
    cost = known_cost(SpeculationPoint(5, 1, speed_up, None, 6, (0.8, 0.6, 0.5, 0.4, 0.3), coverage))
    assert (cost is not None) == known
    assert cost is None or cost >= 1
