"""The output check: exact at temperature 0; above it, honest p-values and a known power."""

from __future__ import annotations

from bisect import bisect
from statistics import fmean

import numpy as np
import pytest

from playground.domain.answers.token_comparison import (
    NEAR_TIE_NATS,
    Divergence,
    Kind,
    check_greedy,
    check_sampled,
    classify,
    common_prefix,
    detectable_shift,
    samples_needed,
)
from playground.i18n import LOCALES, say_message


def test_greedy() -> None:
    found = check_greedy(
        [
            ([1, 2, 3], [1, 2, 3]),
            ([1, 2, 3], [1, 9, 3]),
            ([1, 2, 3], [1, 2]),
            (None, [1]),
            ([1], None),
            ([], [4]),
            ([], []),
        ]
    )
    assert (found.compared, found.identical) == (5, 2)
    assert found.divergences == (
        Divergence(1, 1, (2, 9)),
        Divergence(2, 2, (3, None)),
        Divergence(5, 0, (None, 4)),
    )


@pytest.mark.parametrize("pairs", [[], [(None, [1])]])
def test_nothing_to_compare_is_unknown(pairs: list[tuple[list[int] | None, list[int] | None]]) -> None:
    assert check_greedy(pairs).compared == 0


@pytest.mark.parametrize(
    ("a", "b", "length"), [([], [], 0), ([1], [1], 1), ([1, 2], [1, 3], 1), ([1, 2], [1, 2, 3], 2), ([1], [2], 0)]
)
def test_common_prefix(a: list[int], b: list[int], length: int) -> None:
    assert common_prefix(a, b) == length == common_prefix(b, a)


@pytest.mark.parametrize(
    ("tokens", "top_a", "top_b", "kind"),
    [
        ((1, 2), {1: -0.70, 2: -0.71}, {2: -0.69, 1: -0.70}, "near-tie"),
        # One side alone nearly had the other's token: enough.
        ((1, 2), {1: -0.70, 2: -0.71}, {2: -0.1, 1: -5.0}, "near-tie"),
        ((1, 2), {1: -0.1, 2: -4.0}, {2: -0.1, 1: -5.0}, "real difference"),
        # Below the top ones: at least as far away as their last.
        ((1, 2), {1: -0.1, 7: -3.0}, {2: -0.1, 8: -3.0}, "real difference"),
        ((1, 2), {1: -0.1, 7: -0.2}, {2: -0.1, 1: -3.0}, "unknown"),
        ((1, 2), {1: -0.1}, {2: -0.1}, "unknown"),
        ((1, 2), None, {2: -0.1, 1: -5.0}, "unknown"),
        ((1, 2), {3: -0.1, 2: -5.0}, {2: -0.1, 1: -5.0}, "unknown"),
        ((1, None), {1: -0.1, 2: -0.1}, {2: -0.1, 1: -0.1}, "unknown"),
    ],
)
def test_classify(
    tokens: tuple[int | None, int | None],
    top_a: dict[int, float] | None,
    top_b: dict[int, float] | None,
    kind: Kind,
) -> None:
    assert classify(tokens, top_a, top_b) == kind


def test_a_wider_type_forgives_less() -> None:
    a, b = {1: -0.6, 2: -0.7}, {2: -0.6, 1: -0.7}
    assert classify((1, 2), a, b, NEAR_TIE_NATS["bfloat16"]) == "near-tie"
    assert classify((1, 2), a, b, NEAR_TIE_NATS["float32"]) == "real difference"


def answers(random: np.random.Generator, count: int, sharpness: float, length: int = 12) -> list[list[int]]:
    """A small Markov language over 8 tokens: the next token depends on the last, and some answers end early."""
    weights = np.exp(-sharpness * ((np.arange(8)[None] - np.arange(8)[:, None] - 1) % 8))
    # A table: numpy's own choice takes most of the time otherwise.
    cumulative = (weights.cumsum(axis=1) / weights.sum(axis=1, keepdims=True)).tolist()
    made = []
    for _ in range(count):
        tokens = [0]
        while len(tokens) < length and random.random() > 0.03:
            tokens.append(min(bisect(cumulative[tokens[-1]], random.random()), 7))
        made.append(tokens)
    return made


def p_values(sharpness_b: float, runs: int) -> list[float]:
    random = np.random.default_rng(5)
    found = []
    for seed in range(runs):
        a, b = answers(random, 20, 0.8), answers(random, 20, sharpness_b)
        p_value = check_sampled(a, b, permutations=199, seed=seed).p_value
        assert p_value is not None
        found.append(p_value)
    return found


@pytest.mark.simulation
def test_p_values_are_uniform_when_nothing_differs() -> None:
    found = np.array(p_values(0.8, 400))
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        # Three standard errors.
        assert np.mean(found <= level) == pytest.approx(level, abs=3 * (level * (1 - level) / 400) ** 0.5 + 0.005)


def test_a_real_difference_is_found() -> None:
    assert fmean(p < 0.05 for p in p_values(2.0, 60)) > 0.8


@pytest.mark.simulation
def test_the_power_is_what_is_said() -> None:
    """One token's share at one position of 8, shifted as much as the statement says is found 4 times in 5."""
    shift = detectable_shift(20, 20, 9)
    assert shift is not None
    random = np.random.default_rng(3)
    found = []
    for seed in range(150):
        sides = [
            [
                [5] * 4 + [int(random.random() < share)] + [int(t) for t in random.integers(0, 2, 3)]
                for _ in range(20)
            ]
            for share in (0.5 - shift / 2, 0.5 + shift / 2)
        ]
        found.append((check_sampled(*sides, permutations=199, seed=seed).p_value or 1) < 0.05)
    assert fmean(found) >= 0.75


def test_what_it_can_show_at_20_answers() -> None:
    assert detectable_shift(20, 20, 32) == pytest.approx(0.63, abs=0.01)
    assert detectable_shift(5, 5, 32) is None
    needed = samples_needed(0.1, 32)
    assert detectable_shift(needed, needed, 32) == pytest.approx(0.1, abs=0.001)


def test_sampled_details() -> None:
    found = check_sampled([[1, 2, 3]] * 20, [[1, 2, 4]] * 20)
    assert found.p_value is not None
    assert found.p_value <= 0.01
    assert found.samples == (20, 20)
    # The fourth position is the end of every answer.
    assert found.distances == pytest.approx((0, 0, 1, 0))
    assert (found.prefix_within, found.prefix_between) == ((3, 3), 2)
    assert found.statement().message_id == "outputs.differ"


def test_identical_answers_do_not_differ() -> None:
    found = check_sampled([[1, 2]] * 20, [[1, 2]] * 20)
    assert found.p_value == 1
    assert found.statement().message_id == "outputs.alike"


def test_answers_that_end_sooner_differ() -> None:
    assert (check_sampled([[1, 2]] * 10, [[1]] * 10).p_value or 1) < 0.01


def test_the_same_seed_gives_the_same_p_value() -> None:
    random = np.random.default_rng(1)
    a, b = answers(random, 20, 0.8), answers(random, 20, 0.8)
    assert check_sampled(a, b, seed=4) == check_sampled(a, b, seed=4)


@pytest.mark.parametrize(
    ("a", "b", "message_id"),
    [
        ([], [], "outputs.too_few"),
        ([[1]] * 4, [[1]] * 20, "outputs.too_few"),
        ([list(range(40))] * 5, [list(range(40))] * 5, "outputs.cannot_tell"),
        ([[1]] * 20, [[1]] * 20, "outputs.alike"),
        ([[1]] * 20, [[2]] * 20, "outputs.differ"),
    ],
)
def test_statement(a: list[list[int]], b: list[list[int]], message_id: str) -> None:
    said = check_sampled(a, b).statement()
    assert said.message_id == message_id
    assert all(say_message(said, locale) for locale in LOCALES)
