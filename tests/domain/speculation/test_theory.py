"""What speculation should buy: identities, and against drafting and verifying as they happen, step by step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from scipy.special import stdtrit

from playground.domain.message import Message
from playground.domain.record.counters import Counters
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import ChatMessage
from playground.domain.speculation.prediction import PredictionError, accuracy, fit_costs, predict
from playground.domain.speculation.theory import (
    SpeculationPoint,
    best_k,
    better_draft,
    break_even,
    break_even_acceptance,
    by_concurrency,
    expected_speed_up,
    geometric_rates,
    if_accepted,
    measured_point,
    step_cost,
    tokens_per_step,
)
from playground.domain.stats.verdicts import Verdict
from playground.i18n import LOCALES, say_message

KS = (1, 2, 3, 5, 8)
ROUNDS = 8


def point(
    k: int,
    speed_up: float,
    spread: float | None = None,
    *,
    acceptance: Sequence[float] | None = None,
    coverage: float = 1.0,
    concurrency: int = 1,
) -> SpeculationPoint:
    """`spread`: standard deviation of the rounds' log ratios. None: no interval."""
    half = 0.0 if spread is None else float(stdtrit(ROUNDS - 1, 0.975)) * spread / sqrt(ROUNDS)
    interval = None if spread is None else (speed_up * exp(-half), speed_up * exp(half))
    rates = tuple(geometric_rates(0.7, k) if acceptance is None else acceptance)
    return SpeculationPoint(k, concurrency, speed_up, interval, ROUNDS, rates, coverage)


def exact(
    k: int,
    cost: Callable[[int], float],
    *,
    rate: float = 0.7,
    share: float = 1.0,
    concurrency: int = 1,
    spread: float | None = None,
) -> SpeculationPoint:
    """As theory has it: constant acceptance; `share` of the tokens come from steps that draft."""
    rates = geometric_rates(rate, k)
    drafted = share / tokens_per_step(rates)
    coverage = drafted / (drafted + 1 - share)
    speed_up = expected_speed_up(rates, coverage, cost(k))
    return point(k, speed_up, spread, acceptance=rates, coverage=coverage, concurrency=concurrency)


def linear(k: int) -> float:
    return 1.1 + 0.15 * k


# Drafting and verifying as they happen


@pytest.mark.parametrize(("rate", "k", "coverage"), [(0.8, 5, 1.0), (0.5, 3, 1.0), (0.9, 8, 0.4), (0.3, 1, 0.7)])
def test_expected_tokens_and_speed_up_by_simulation(rate: float, k: int, coverage: float) -> None:
    random, steps, cost = np.random.default_rng(5), 200_000, 1.7
    drafts = random.random(steps) < coverage
    accepted = np.cumprod(random.random((steps, k)) < rate, axis=1).sum(axis=1) * drafts
    tokens, time = steps + accepted.sum(), np.where(drafts, cost, 1.0).sum()
    rates = geometric_rates(rate, k)
    assert tokens_per_step(rates, coverage) == pytest.approx(tokens / steps, rel=0.01)
    assert expected_speed_up(rates, coverage, cost) == pytest.approx(tokens / time, rel=0.01)


def repetitive_text(tokens: int, seed: int) -> list[int]:
    """Words of a large vocabulary, and phrases that come again, cut short at a random length."""
    random = np.random.default_rng(seed)
    phrases = [list(random.integers(0, 2000, 20)) for _ in range(6)]
    text: list[int] = []
    while len(text) < tokens:
        if random.random() < 0.5:
            text += phrases[random.integers(len(phrases))][: random.integers(3, 21)]
        else:
            text += list(random.integers(0, 2000, random.integers(1, 8)))
    return text[:tokens]


def replayed(text: Sequence[int], k: int) -> tuple[float, float, list[float]]:
    """n-gram drafting over a text that the target is bound to say: tokens a step, coverage, acceptance."""
    seen: dict[tuple[int, int], int] = {}
    position, known, steps, drafts = 2, 2, 0, 0
    accepted = [0] * k
    while position < len(text):
        while known < position:
            seen.setdefault((text[known - 2], text[known - 1]), known)
            known += 1
        start = seen.get((text[position - 2], text[position - 1]))
        draft = text[start : min(start + k, position)] if start is not None else []
        right = 0
        while right < len(draft) and position + right < len(text) and draft[right] == text[position + right]:
            accepted[right] += 1
            right += 1
        steps, drafts, position = steps + 1, drafts + bool(draft), position + right + 1
    return (len(text) - 2) / steps, drafts / steps, [count / drafts for count in accepted]


@pytest.mark.parametrize("seed", range(5))
def test_coverage_and_acceptance_of_another_k_by_replay(seed: int) -> None:
    """Not told: how many steps k = 5 saves, of which some would have drafted."""
    text = repetitive_text(4000, seed)
    tokens, coverage, acceptance = replayed(text, 5)
    assert 0.2 < coverage < 0.8
    measured = point(5, tokens, acceptance=acceptance, coverage=coverage)
    assert measured.tokens_per_step == pytest.approx(tokens, rel=0.005)
    assert step_cost(measured) == pytest.approx(1, abs=0.02)
    # Every step costs 1 here, drafting or not: the band's end of fixed cost is the tokens a step.
    for prediction in predict([measured], [1, 2, 3, 8]):
        assert prediction.interval is not None
        assert prediction.interval[1] == pytest.approx(replayed(text, prediction.k)[0], rel=0.06)


# Identities


def test_the_closed_form_of_constant_acceptance() -> None:
    for k in KS:
        for rate in (0.0, 0.3, 0.9):
            assert tokens_per_step(geometric_rates(rate, k)) == pytest.approx((1 - rate ** (k + 1)) / (1 - rate))
        assert tokens_per_step(geometric_rates(1.0, k)) == k + 1


def of_vllm(file: str, name: str) -> Callable[..., list[float]]:
    """A function of the installed vLLM that needs nothing else of it: importing the whole takes 15 s."""
    package = find_spec("vllm")
    if package is None or package.origin is None:
        pytest.skip("vLLM is not installed here")
    tree = ast.parse((Path(package.origin).parent / file).read_text(encoding="utf-8"))
    [found] = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    found.decorator_list = []
    names: dict[str, Callable[..., list[float]]] = {}
    exec(compile(ast.Module([found], []), file, "exec"), names)
    return names[name]


def test_rates_are_those_that_vllm_wants() -> None:
    """By its own check and conversion: unconditional, one a position; conditional inside."""
    resolved = of_vllm("config/speculative.py", "_resolve_synthetic_acceptance_rates")
    conditional = of_vllm("v1/spec_decode/utils.py", "unconditional_to_conditional_rates")
    rates = list(geometric_rates(0.6, 4))
    assert resolved(4, rates, None) == rates
    assert conditional(rates) == pytest.approx([0.6] * 4)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_cost_of_a_step_comes_back(share: float) -> None:
    for k in KS:
        assert step_cost(exact(k, linear, share=share)) == pytest.approx(linear(k))


@pytest.mark.parametrize("coverage", [0.2, 1.0])
def test_break_even_by_round_trip(coverage: float) -> None:
    """At any coverage."""
    for k in KS:
        needed = break_even_acceptance(k, linear(k))
        assert needed is not None
        assert better_draft(linear(k), k, [needed], coverage) == pytest.approx([1.0])


def test_break_even_at_its_ends() -> None:
    assert break_even_acceptance(3, 1.0) == pytest.approx(0, abs=1e-9)
    assert break_even_acceptance(3, 0.9) == pytest.approx(0, abs=1e-9)
    assert break_even_acceptance(3, 4.0) == pytest.approx(1)
    assert break_even_acceptance(3, 4.01) is None
    assert break_even(3, 4.01).message_id == "theory.never_pays"


def test_a_better_draft_is_never_slower_and_a_dearer_step_never_faster() -> None:
    for k in KS:
        gains = better_draft(1.5, k, [step / 20 for step in range(21)])
        assert gains == sorted(gains)
        assert gains[0] == pytest.approx(1 / 1.5)
        assert gains[-1] == pytest.approx((k + 1) / 1.5)
        needed = [break_even_acceptance(k, 1 + cost / 10) or inf for cost in range(1, 10)]
        assert needed == sorted(needed)


# Predictions


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("cost", [linear, lambda k: 1.4, lambda k: 1 + 0.3 * k], ids=["linear", "fixed", "steep"])
def test_two_points_tell_all_where_the_cost_is_linear(cost: Callable[[int], float], share: float) -> None:
    measured = [exact(k, cost, share=share) for k in (2, 5)]
    for prediction in predict(measured, KS):
        truth = exact(prediction.k, cost, share=share).speed_up
        assert (prediction.kind, prediction.interval) == ("fit", None)
        assert prediction.speed_up == pytest.approx(truth)
        # From one of them: the truth lies in the band.
        for only in measured:
            [band] = predict([only], [prediction.k])
            assert (band.kind, band.speed_up) == ("band", None)
            assert band.interval is not None
            assert band.interval[0] - 1e-9 <= truth <= band.interval[1] + 1e-9


def test_one_point_tells_itself() -> None:
    [band] = predict([exact(3, linear)], [3])
    assert band.interval == pytest.approx((exact(3, linear).speed_up,) * 2)


def test_a_step_measured_below_a_plain_one_makes_no_band_sure() -> None:
    """Noise: such a step would promise that longer drafts are free, too."""
    [band] = predict([exact(1, lambda k: 0.95)], [8])
    assert band.interval is not None
    assert band.interval[1] > 3 * band.interval[0]


def test_each_concurrency_has_a_fit_of_its_own() -> None:
    def busy(k: int) -> float:
        return 1.0 + 0.5 * k

    measured = [exact(k, busy, concurrency=8) for k in (5, 2)] + [exact(k, linear) for k in (2, 5)]
    assert list(by_concurrency(measured)) == [1, 8]
    alone, shared = fit_costs(measured)
    assert (alone.concurrency, shared.concurrency) == (1, 8)
    assert (alone.base, alone.per_token, alone.residual) == (pytest.approx(1.1), pytest.approx(0.15), None)
    assert (shared.base, shared.per_token) == (pytest.approx(1.0), pytest.approx(0.5))
    assert alone.at(8) == pytest.approx(linear(8))
    found = {each.concurrency: each.speed_up for each in predict(measured, [3])}
    assert found == {1: pytest.approx(exact(3, linear).speed_up), 8: pytest.approx(exact(3, busy).speed_up)}
    assert fit_costs([exact(2, linear), exact(5, linear, concurrency=4)]) == []


def test_noise_makes_no_step_cheaper_with_a_longer_draft() -> None:
    [model] = fit_costs([exact(2, lambda k: 1.3), exact(8, lambda k: 1.2)])
    assert (model.base, model.per_token) == (pytest.approx(1.25), 0)
    # Nor cheaper than a plain one, however steep the line was between the two.
    [steep] = fit_costs([exact(4, lambda k: 2.0), exact(8, lambda k: 6.0)])
    assert steep.at(1) == 1


def test_the_residual_says_how_far_the_cost_is_from_a_line() -> None:
    [straight] = fit_costs([exact(k, linear) for k in KS])
    [bent] = fit_costs([exact(k, lambda k: 1 + 0.05 * k**2) for k in KS])
    assert straight.residual == pytest.approx(0, abs=1e-9)
    assert bent.residual is not None
    assert bent.residual > 0.1


def left_out(points: list[SpeculationPoint]) -> list[PredictionError]:
    """Each k predicted from the others."""
    return [
        PredictionError(prediction, known.speed_up)
        for known in points
        for prediction in predict([other for other in points if other.k != known.k], [known.k])
    ]


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_leaving_one_out_of_exact_data_misses_nothing(share: float) -> None:
    errors = left_out([exact(k, linear, share=share) for k in KS])
    assert [error.prediction.k for error in errors] == list(KS)
    assert [error.relative for error in errors] == pytest.approx([0] * len(KS), abs=1e-9)
    assert accuracy([]) is None


def test_an_error_is_seen() -> None:
    """One k that is 10% faster than the others say."""
    odd = exact(3, linear)
    odd = point(3, 1.1 * odd.speed_up, acceptance=odd.acceptance)
    errors = left_out([odd, *(exact(k, linear) for k in (1, 5))])
    missed = {error.prediction.k: error.relative for error in errors}
    assert missed[3] == pytest.approx(1 / 1.1 - 1)
    said = accuracy(errors)
    assert said is not None
    assert said.params["most"] == pytest.approx(100 * max(abs(value) for value in missed.values()))


def test_a_band_is_missed_only_outside() -> None:
    [band] = predict([exact(3, linear)], [8])
    assert band.interval is not None
    low, high = band.interval
    assert PredictionError(band, (low + high) / 2).relative == 0
    assert PredictionError(band, 2 * high).relative == pytest.approx(-0.5)
    assert PredictionError(band, low / 2).relative == pytest.approx(1.0)


def test_the_interval_of_a_prediction_covers_the_truth() -> None:
    """Measured k = 2 and 5 with 4% noise between rounds; k = 3 predicted."""
    random = np.random.default_rng(11)
    truth, covered = exact(3, linear).speed_up, []
    for _ in range(300):
        measured = []
        for k in (2, 5):
            rounds = log(exact(k, linear).speed_up) + random.normal(0, 0.04, ROUNDS)
            measured.append(point(k, exp(rounds.mean()), float(rounds.std(ddof=1))))
        [prediction] = predict(measured, [3])
        assert prediction.interval is not None
        covered.append(prediction.interval[0] <= truth <= prediction.interval[1])
    assert fmean(covered) > 0.92


# The best k


def test_a_clear_best() -> None:
    found = best_k([point(1, 1.2, 0.02), point(3, 1.5, 0.02), point(8, 0.9, 0.02)])
    assert (found.k, found.reason.message_id) == (3, "theory.best_k")
    assert found.confidence is not None
    assert found.confidence > 0.99


def test_near_ties_are_owned_up_to() -> None:
    found = best_k([point(3, 1.50, 0.03), point(5, 1.51, 0.03), point(8, 1.1, 0.03)])
    assert (found.k, found.reason.message_id, found.reason.params["rival"]) == (5, "theory.best_k_unsure", 3)
    assert found.confidence is not None
    assert 0.5 < found.confidence < 0.9


def test_a_sure_gain_before_a_larger_unsure_one() -> None:
    found = best_k([point(3, 1.20, 0.02), point(5, 1.25, 0.5)])
    assert (found.k, found.reason.params["rival"]) == (3, 5)


def test_off() -> None:
    slower = best_k([point(3, 0.7, 0.02), point(5, 0.8, 0.02)])
    assert (slower.k, slower.reason.message_id, slower.reason.params["k"]) == ("off", "theory.off_slower", 5)
    assert slower.confidence == pytest.approx(1)
    unclear = best_k([point(3, 0.7, 0.02), point(5, 1.02, 0.1)])
    assert (unclear.k, unclear.reason.message_id) == ("off", "theory.off_unclear")
    assert best_k([point(5, 1.5)]).k is None
    assert best_k([]).confidence is None


@pytest.mark.simulation
def test_the_best_of_many_is_not_made_of_noise() -> None:
    """Eight k that all do nothing, 400 times: without the wider interval about one time in six."""
    random = np.random.default_rng(3)
    taken = 0
    for _ in range(400):
        noise = random.normal(0, 0.04, (8, ROUNDS))
        points = [point(k, exp(row.mean()), float(row.std(ddof=1))) for k, row in enumerate(noise, 1)]
        taken += best_k(points).k != "off"
    assert taken / 400 < 0.05


def test_the_same_points_give_the_same_answer() -> None:
    points = [point(3, 1.50, 0.03), point(5, 1.51, 0.03)]
    assert best_k(points) == best_k(list(points))


# From a run, and to a person


def test_a_point_from_a_runs_figures() -> None:
    """101 tokens: 100 decode tokens in 60 steps, of which 20 drafted; 40 draft tokens were accepted."""
    counted = Counters(running=0, waiting=0, drafts=20, draft_tokens=60, accepted_tokens=40)
    after = replace(counted, accepted_per_position=(18, 12, 10))
    chunks = [Chunk(10, 1, "x"), Chunk(510, 100, "x")]
    request = RequestTrace((ChatMessage(role="user", content="x"),), chunks=chunks, ended=True)
    trial = Trial(requests=[request], before=Counters(running=0, waiting=0), after=after)
    side = SideRecord("B", EngineSettings(target="m", speculation=Ngram()), trials=[trial])
    verdict = Verdict("B", "A", "tpot", "faster", 1.25, (1.2, 1.3), 8)
    found = measured_point(3, 1, verdict, side_figures(side))
    assert found == SpeculationPoint(3, 1, 1.25, (1.2, 1.3), 8, (0.9, 0.6, 0.5), 1 / 3)
    assert found.tokens_per_step == pytest.approx(100 / 60)
    # 20 x r + 40 plain steps take 100 / 1.25 plain steps' time.
    assert step_cost(found) == pytest.approx(2.0)
    assert measured_point(3, 1, replace(verdict, speed_up=None), side_figures(side)) is None
    assert measured_point(3, 1, replace(verdict, metric="ttft"), side_figures(side)) is None
    side.trials = [replace(trial, after=Counters(running=0, waiting=0))]
    assert measured_point(3, 1, verdict, side_figures(side)) is None


def sentences() -> list[Message]:
    unmeasured = [exact(k, linear) for k in (2, 5, 8)]
    measured = [exact(k, linear, spread=0.02) for k in (2, 5)]
    predictions = [*predict(unmeasured, [3]), *predict(measured, [3]), *predict(measured[:1], [3])]
    said = [accuracy(left_out(unmeasured)), break_even(5, 1.8), break_even(5, 7.0), if_accepted(5, 1.8, 0.8)]
    return [
        *(each.statement() for each in predictions),
        PredictionError(predictions[1], 1.4).statement(),
        *(problem for problem in said if problem),
        best_k([point(5, 1.5)]).reason,
        best_k([point(5, 1.5, 0.02)]).reason,
        best_k([point(5, 1.5, 0.1), point(3, 1.49, 0.1)]).reason,
        best_k([point(5, 0.5, 0.02)]).reason,
        best_k([point(5, 1.0, 0.02)]).reason,
    ]


def test_every_statement_can_be_said() -> None:
    said = sentences()
    assert len({problem.message_id for problem in said}) == len(said) == 13
    for problem in said:
        for locale in LOCALES:
            assert "{" not in say_message(problem, locale)
    assert "more than 50% of the draft tokens" in say_message(break_even(1, 1.5))
