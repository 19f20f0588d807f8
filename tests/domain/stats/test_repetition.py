"""A repeated run: how often a change is claimed where there is none, and that one is seen where there is."""

from __future__ import annotations

import random
from math import exp

from support.measured_run import measured_run

from playground.domain.record.run import Run
from playground.domain.stats.repetition import Repetition


def repeated(chance: random.Random, slower: float = 1.0) -> Run:
    """The measured run with 3% noise on every trial, and its second side so many times as slow."""
    run = measured_run()
    for index, side in enumerate(run.sides):
        for trial in side.trials:
            factor = exp(chance.gauss(0, 0.03)) * (slower if index else 1)
            for trace in trial.requests:
                first = trace.chunks[0].ms
                trace.chunks = [
                    type(chunk)(first + (chunk.ms - first) * factor, chunk.tokens, chunk.text, chunk.token_ids)
                    for chunk in trace.chunks
                ]
    return run


def test_false_alarms_are_rare_and_changes_are_seen() -> None:
    chance = random.Random(1)
    repetitions = [Repetition.of([repeated(chance), repeated(chance)]) for _ in range(60)]
    assert all(len(repetition.changes) == 3 and repetition.whole for repetition in repetitions)
    # Of 60, 5% is 3; without the correction for three intervals it would be about 8.
    assert sum(repetition.agreement == "changed" for repetition in repetitions) <= 6
    changed = [Repetition.of([repeated(chance), repeated(chance, 1.2)]) for _ in range(20)]
    assert all(repetition.agreement == "changed" for repetition in changed)
    named = [(change.side, change.baseline) for change in changed[0].changes if not change.agrees]
    assert named == [("quick", "plain"), ("quick", None)]


def test_too_few_rounds_say_nothing() -> None:
    assert Repetition.of([measured_run(), measured_run(rounds=4)]).agreement == "unknown"
    assert Repetition.of([measured_run(rounds=4)] * 2).changes == ()
