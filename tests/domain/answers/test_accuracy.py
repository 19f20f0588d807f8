"""Accuracy beside speed: the scoring, its statistics against exact enumeration, and what is asked of the sides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from math import comb

import pytest
from scipy.stats import binomtest
from support.measured_run import measured_run
from support.schema import check

from playground.domain.answers.accuracy import Z, accuracy_of, is_right, mcnemar, statements, tango, wilson
from playground.domain.record.evidence import AccuracyEvidence, Task
from playground.domain.record.run import Run
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.i18n import LOCALES, say_message
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.tables import tables
from playground.runs.checks.accuracy import EXAMPLES, tasks

RIGHT, WRONG = "Paris", "Rome"
TASK = Task("What is the capital of France?", (RIGHT,))


def evidence(*sides: Sequence[str | None]) -> AccuracyEvidence:
    return AccuracyEvidence((TASK,) * len(sides[0]), tuple(map(tuple, sides)))


def scored(*sides: Sequence[str | None]) -> Run:
    run = measured_run()
    run.accuracy = evidence(*sides)
    return run


# The tasks


def test_the_tasks() -> None:
    """Enough of them, each asked once, none given away by the examples, a few in Chinese."""
    found = tasks()
    assert len(found) >= 60
    questions = [task.question for task in found]
    assert len(set(questions)) == len(questions)
    assert not {example for example, _ in EXAMPLES} & set(questions)
    assert 10 <= sum(bool(re.search("[\u4e00-\u9fff]", question)) for question in questions) <= 20
    for task in found:
        assert task.accepted
        assert all(is_right(task, accepted) for accepted in task.accepted)
        assert not is_right(task, "I don't know")
        assert not is_right(task, "")


@pytest.mark.parametrize(
    "answer",
    [
        "paris",
        " Paris.\n\nIt lies on the Seine.",
        '"PARIS"!',
        "**Paris**",
        "The answer is Paris.",
        "Answer: Paris",
        "the Paris",
        "\uff30aris",  # full width
        "<think>Rome?\nNo.</think>\n\nParis",
    ],
)
def test_right(answer: str) -> None:
    assert is_right(TASK, answer)


@pytest.mark.parametrize("answer", ["Rome", "", "Paris, Texas", "It is Paris.", "Rome\nParis", "<think>Paris"])
def test_wrong(answer: str) -> None:
    """The form counts: a sentence around the answer is no exact answer."""
    assert not is_right(TASK, answer)


@pytest.mark.parametrize(
    ("accepted", "answer", "right"),
    [
        ("8586", "8,586", True),
        ("3, 5, 9", "3, 5, 9", True),
        ("12", "1,2", False),
        ("108", "12 × 9 = 108.", True),
        ("-5", "-5.", True),
        ("5", "-5", False),
        ("巴黎", "答案：巴黎。", True),
        ("巴黎", "答案是“巴黎”", True),
        ("answer", "answer", True),
    ],
)
def test_what_is_compared(accepted: str, answer: str, right: bool) -> None:
    assert is_right(Task("?", (accepted,)), answer) == right


# The statistics


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    # Newcombe 1998, table I: his method 3 is Wilson's.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson(right: int, total: int, low: float, high: float) -> None:
    assert wilson(right, total) == pytest.approx((low, high), abs=5e-5)


def test_mcnemar_is_the_exact_binomial_test() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(600, 600) == 1
    assert mcnemar(5000, 5300) == pytest.approx(binomtest(5000, 10_300).pvalue)
    for gained, lost in product(range(12), repeat=2):
        if gained + lost:
            assert mcnemar(gained, lost) == pytest.approx(binomtest(gained, gained + lost).pvalue)


def test_tango_without_a_discordant_task() -> None:
    """There the interval has a closed form: the score statistic is delta sqrt(n / (1 - delta)) at its edge."""
    low, high = tango(0, 0, 78)
    edge = Z * Z / (78 + Z * Z)
    assert (low, high) == pytest.approx((-edge, edge))


@pytest.mark.parametrize(("gained", "lost", "total"), [(0, 1, 44), (3, 9, 78), (10, 0, 10), (0, 7, 7), (5, 5, 10)])
def test_tango_contains_what_was_found_and_turns_with_the_sides(gained: int, lost: int, total: int) -> None:
    low, high = tango(gained, lost, total)
    assert -1 <= low <= (gained - lost) / total <= high <= 1
    assert tango(lost, gained, total) == pytest.approx((-high, -low))


@pytest.mark.parametrize(("p_gained", "p_lost"), [(0.1, 0.1), (0.25, 0.1), (0.05, 0.3), (0.02, 0.02)])
def test_tango_covers(p_gained: float, p_lost: float) -> None:
    """Its exact coverage, over all outcomes of 40 tasks: near 95%."""
    total, covered = 40, 0.0
    for gained in range(total + 1):
        for lost in range(total + 1 - gained):
            low, high = tango(gained, lost, total)
            if low <= p_gained - p_lost <= high:
                ways = comb(total, gained) * comb(total - gained, lost)
                rest = 1 - p_gained - p_lost
                covered += ways * p_gained**gained * p_lost**lost * rest ** (total - gained - lost)
    assert 0.93 < covered < 0.995


# What it comes to


def test_shares_and_differences() -> None:
    """Tasks that a side did not answer count for neither its share nor the difference."""
    found = accuracy_of(evidence([RIGHT, RIGHT, WRONG, None, RIGHT], [RIGHT, WRONG, RIGHT, RIGHT, None]))
    first, second = found.sides
    assert (first.total, first.answered, first.right, first.share) == (5, 4, 3, 0.75)
    assert (second.answered, second.right, second.interval) == (4, 3, wilson(3, 4))
    (difference,) = found.differences
    assert (difference.compared, difference.gained, difference.lost, difference.difference) == (3, 1, 1, 0)
    nothing = accuracy_of(evidence([RIGHT], [None]))
    assert (nothing.sides[1].share, nothing.sides[1].interval) == (None, None)
    assert (nothing.differences[0].difference, nothing.differences[0].interval) == (None, None)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ([RIGHT] * 6 + [WRONG] * 6, ["side", "side", "same"]),
        ([RIGHT] * 12, ["side", "side", "better"]),
        ([WRONG] * 12, ["side", "side", "worse"]),
        ([RIGHT] * 7 + [WRONG] * 5, ["side", "side", "unclear"]),
        ([None, *[RIGHT] * 5, *[WRONG] * 6], ["side", "side_partly", "same"]),
        ([None] * 12, ["side", "unknown"]),
    ],
)
def test_statements(second: list[str | None], told: list[str]) -> None:
    run = scored([RIGHT] * 6 + [WRONG] * 6, second)
    said = statements(run)
    assert [one.message_id.removeprefix("accuracy.") for one in said] == told
    assert [item.sentence for item in conclusions(run)][-len(said) :] == said
    for locale in LOCALES:
        assert all("plain" in say_message(one, locale) or "quick" in say_message(one, locale) for one in said)
        assert tables(run, locale).single[-1].cells[0] == ["50% (25% - 75%)"]


def test_the_speed_up_does_not_know_of_it() -> None:
    plain, wrong = measured_run(), scored([RIGHT] * 20, [WRONG] * 20)
    assert run_verdicts(wrong, rounds_of(wrong)) == run_verdicts(plain, rounds_of(plain))
    assert conclusions(wrong)[: len(conclusions(plain))] == conclusions(plain)
    assert tables(wrong).single[:-1] == tables(plain).single
    assert statements(plain) == []


def test_the_document() -> None:
    run = scored([RIGHT, WRONG, None], ["paris.", RIGHT, RIGHT])
    told = check("compare", compare_document(run))["accuracy"]
    assert [(side["side"], side["right"], side["share"]) for side in told["sides"]] == [
        ("plain", 1, 0.5),
        ("quick", 3, 1.0),
    ]
    (difference,) = told["differences"]
    assert (difference["side"], difference["gained"], difference["lost"]) == ("quick", 1, 0)
    assert told["tasks"][2]["answers"] == [None, RIGHT]
    assert told["tasks"][2]["right"] == [None, True]
    assert check("compare", compare_document(measured_run()))["accuracy"] is None
