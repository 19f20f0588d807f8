"""Derives a measured run's rounds, verdicts and ending from its trials. Nothing here is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from playground.domain.record.metrics import objective_value
from playground.domain.record.run import Run, Trial
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.spec.workload import Objective

from .verdicts import Verdict, compare, narrow_enough

Ending = Literal["narrow", "rounds", "budget"]


@dataclass(frozen=True, slots=True)
class Round:
    """Every side once. `order` holds the sides' labels in the order in which they served; `values` the objective's
    figure of each, None where unknown (ms, tokens a second or requests a second)."""

    number: int
    order: tuple[str, ...]
    values: dict[str, float | None]


def order_of(number: int, sides: int) -> list[int]:
    """Positions of the sides in the order of round `number`: A B, then B A, so that a linear drift cancels."""
    forward = list(range(sides))
    return forward if number % 2 == 0 else forward[::-1]


def whole_rounds(run: Run) -> int:
    """How many rounds are whole. This is cheap enough to call while an engine is measured."""
    return min((sum(trial.complete for trial in side.trials) for side in run.sides), default=0)


def round_seconds(run: Run) -> float | None:
    """How long a round takes on average, by the times at which its trials began; None before the second one."""
    began = [trial.started_ms for side in run.sides for trial in side.trials]
    if len(began) < 2:
        return None
    return (max(began) - min(began)) / 1000 / (len(began) - 1) * len(run.sides)


def rounds_of(run: Run, objective: Objective | None = None) -> list[Round]:
    """The whole rounds: those in which every side's trial is complete. By the workload's objective, or another."""
    if run.measurement is None:
        return []
    rounds = []
    for number in range(whole_rounds(run)):
        trials = [side.trials[number] for side in run.sides]
        labelled = list(zip([side.label for side in run.sides], trials, strict=True))
        by = objective or run.workload.objective
        rounds.append(
            Round(
                trials[0].round,
                tuple(label for label, _ in sorted(labelled, key=lambda item: item[1].started_ms)),
                {label: _value(run, trial, by) for label, trial in labelled},
            )
        )
    return rounds


def _value(run: Run, trial: Trial, by: Objective) -> float | None:
    if trial.summary is not None:
        return trial.summary.value if by == run.workload.objective else None
    assert run.measurement is not None
    return objective_value(trial.requests, by, run.measurement.limits)


def run_verdicts(run: Run, rounds: list[Round]) -> tuple[Verdict, ...]:
    """The verdict on each other side against the first; empty for a race."""
    if run.measurement is None:
        return ()
    values = [round_.values for round_ in rounds]
    baseline, *others = [side.label for side in run.sides]
    objective, target = run.workload.objective, run.measurement.target_width
    return tuple(compare(values, side, baseline, objective, target) for side in others)


def settled(run: Run, verdicts: tuple[Verdict, ...]) -> bool:
    """Whether every interval is as narrow as the measurement requires."""
    return run.measurement is not None and all(
        narrow_enough(verdict, run.measurement.target_width) for verdict in verdicts
    )


def ending(run: Run, rounds: list[Round], verdicts: tuple[Verdict, ...]) -> Ending | None:
    """Why a measured run ended; None while it runs, and where it was stopped or failed."""
    if run.measurement is None or run.status != "done":
        return None
    if len(rounds) >= MIN_ROUNDS and settled(run, verdicts):
        return "narrow"
    return "rounds" if len(rounds) >= run.measurement.max_rounds else "budget"
