"""From a sweep's results to the setting to deploy: the best, nothing, or speculation off."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sweep_run
from support.sweep_run import base_case, made_sweep

from playground.config import Config
from playground.domain.message import Message
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Limits
from playground.domain.speculation.theory import SpeculationPoint, known_cost, measured_point
from playground.domain.stats.reasons import Reason
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.result import GeometricMean
from playground.i18n import LOCALES, say_message
from playground.report.sweep import conclusions_of
from playground.ui.sweep.painter import SweepPainter


@pytest.fixture
def slow_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draft costs more than it brings."""
    monkeypatch.setattr(sweep_run, "PER_DRAFT", 4.0)


def test_the_best_k_and_what_deploys_it(config: Config) -> None:
    sweep = made_sweep("quick.k=1,2,4,8")
    best = SweepAnalysis.of(sweep).recommendation
    assert isinstance(best.values, tuple)
    side = SweepAnalysis.of(sweep).recommended_side
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
    assert SweepAnalysis.of(sweep).recommendation.values == "off"
    side = SweepAnalysis.of(sweep).recommended_side
    assert side is not None
    assert side.label == "plain"


def test_equal_points_are_not_told_apart() -> None:
    """Nothing in the made-up engines depends on it."""
    best = SweepAnalysis.of(made_sweep("max_num_seqs=1,2,4")).recommendation
    assert best.reason.message_id == "sweep.best_unsure"


def test_a_point_without_an_interval_may_be_as_good() -> None:
    sweep = made_sweep("quick.prompt_lookup_max=2,3")
    short = made_sweep("quick.prompt_lookup_max=2,3", rounds=3)
    sweep.points[1] = short.points[1]
    assert SweepAnalysis.of(sweep).recommendation.reason.message_id == "sweep.best_unsure"


def test_bad_rounds_that_have_no_figure_count_against_a_point() -> None:
    """Of more than one in ten the good ones alone say nothing."""
    assert GeometricMean.of([4.0] * 10 + [None]).value == pytest.approx(4)
    for bad in (None, 0.0):
        assert GeometricMean.of([4.0] * 6 + [bad]) == GeometricMean(None, None)


def test_where_all_sides_turn_a_point_that_fails_requests_is_not_the_best() -> None:
    sweep = made_sweep("max_num_seqs=1,2")
    run = sweep.points[1].run
    assert run is not None
    for side in run.sides:
        side.trials[0].requests[0].problem = Message("stream.cut")
    best = SweepAnalysis.of(sweep).recommendation
    assert (best.values, best.reason.message_id) == ((1,), "sweep.only_one")


def test_a_baseline_without_good_requests_is_why_others_are_recommended() -> None:
    case = base_case(objective="goodput")
    limits = case.measurement.model_copy(update={"limits": Limits(tpot_ms=15)})
    sweep = made_sweep("quick.prompt_lookup_max=2,3", case=case.model_copy(update={"measurement": limits}))
    verdict = SweepAnalysis.of(sweep).points[0].sides[1].verdict
    assert verdict is not None
    assert (verdict.verdict, verdict.speed_up) == ("faster", None)
    best = SweepAnalysis.of(sweep).recommendation
    assert (best.side, best.reason.message_id) == ("quick", "sweep.best_unsure")


def test_rounds_without_a_verdict_are_not_called_too_few() -> None:
    sweep = made_sweep("quick.prompt_lookup_max=2,3")
    withheld = []
    for point in SweepAnalysis.of(sweep).points:
        verdict = point.sides[1].verdict
        assert verdict is not None
        moving = replace(verdict, verdict="no clear difference", reason=Reason("ratio_moves"))
        withheld.append(replace(point, sides=(point.sides[0], replace(point.sides[1], verdict=moving))))
    best = SweepAnalysis(sweep, tuple(withheld)).recommendation
    assert best.reason.message_id == "sweep.no_verdict"


def test_of_those_that_are_clearly_better_the_best() -> None:
    """A point that came to more, but may be slower than the baseline, is told as a rival."""
    sweep = made_sweep("quick.prompt_lookup_max=2,3")
    first, second = SweepAnalysis.of(sweep).points
    verdict = second.sides[1].verdict
    assert verdict is not None
    wide = replace(verdict, verdict="no clear difference", speed_up=9.0, interval=(0.5, 162.0))
    unsure = replace(second, sides=(second.sides[0], replace(second.sides[1], verdict=wide)))
    best = SweepAnalysis(sweep, (first, unsure)).recommendation
    assert (best.number, best.reason.message_id) == (0, "sweep.best_unsure")


def test_theory_makes_nothing_of_points_without_an_interval() -> None:
    assert SweepAnalysis.of(made_sweep("quick.k=1,2,4,8")).prediction_errors
    short = made_sweep("quick.k=1,2,4,8", rounds=2)
    assert (SweepAnalysis.of(short).predictions, SweepAnalysis.of(short).prediction_errors) == ({}, [])
    assert [sentence.message_id for sentence in conclusions_of(SweepAnalysis.of(short))] == ["theory.best_unknown"]


def test_a_withheld_verdict_is_no_reason_to_recommend() -> None:
    [result] = SweepAnalysis.of(made_sweep("quick.k=3")).points
    side = result.side("quick")
    assert side is not None
    assert side.verdict is not None
    sound = measured_point(3, 1, side.verdict, side.figures)
    moving = replace(side.verdict, verdict="no clear difference", reason=Reason("ratio_moves"))
    withheld = measured_point(3, 1, moving, side.figures)
    assert sound is not None
    assert sound.interval is not None
    assert withheld is not None
    assert withheld.interval is None


def test_what_is_best_depends_on_a_circumstance() -> None:
    sweep = made_sweep("quick.k=1,4", "concurrency=1,8")
    assert SweepAnalysis.of(sweep).recommendation.reason.message_id == "sweep.depends"
    told = [sentence.params["under"] for sentence in SweepAnalysis.of(sweep).best_by_circumstance]
    assert told == ["concurrency = 1", "concurrency = 8"]
    for locale in LOCALES:
        assert all(say_message(sentence, locale) for sentence in conclusions_of(SweepAnalysis.of(sweep)))


def test_a_circumstance_alone_recommends_nothing() -> None:
    best = SweepAnalysis.of(made_sweep("concurrency=1,4")).recommendation
    assert (best.values, best.reason.message_id) == (None, "sweep.circumstance")


@pytest.mark.parametrize(
    ("coverage", "speed_up", "known"), [(0.05, 1.08, False), (0.2, 1.05, True), (1.0, 9.0, True)]
)
def test_a_cost_that_noise_makes_is_not_told(coverage: float, speed_up: float, known: bool) -> None:
    cost = known_cost(SpeculationPoint(5, 1, speed_up, None, 6, (0.8, 0.6, 0.5, 0.4, 0.3), coverage))
    assert (cost is not None) == known
    assert cost is None or cost >= 1
