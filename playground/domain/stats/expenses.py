"""How the sides' energy and cost for an output token compare, by the rounds of a run. Nothing here is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from playground.domain.record.expense import cost_per_million, energy_per_token_j
from playground.domain.record.run import Run, SideRecord, Trial

from .ratios import Ratio
from .rounds import whole_rounds

Expense = Literal["energy_per_output_token_j", "cost_per_million_output_tokens"]
EXPENSES: tuple[Expense, ...] = ("energy_per_output_token_j", "cost_per_million_output_tokens")


@dataclass(frozen=True, slots=True)
class ExpenseRatio:
    """The side's figure over the baseline's, paired by rounds: below 1 the side takes less."""

    side: str
    baseline: str
    figure: Expense
    ratio: Ratio


def expense_ratios(run: Run) -> list[ExpenseRatio]:
    """Each other side against the first. None where a round's figure is unknown, or there are too few rounds."""
    ratios = []
    for figure in EXPENSES:
        first, *others = [by_round(run, side, figure) for side in run.sides]
        for side, values in zip(run.sides[1:], others, strict=True):
            paired = [value / base if value and base else None for value, base in zip(values, first, strict=True)]
            if (ratio := Ratio.of_values(paired)) is not None:
                ratios.append(ExpenseRatio(side.label, run.sides[0].label, figure, ratio))
    return ratios


def by_round(run: Run, side: SideRecord, figure: Expense) -> list[float | None]:
    """The side's figure in each whole round; None where it is unknown or a request failed."""
    return [_value(run, side, trial, figure) for trial in side.trials[: whole_rounds(run)]]


def _value(run: Run, side: SideRecord, trial: Trial, figure: Expense) -> float | None:
    if run.measurement is None or any(trace.problem for trace in trial.requests):
        return None
    if figure == "energy_per_output_token_j":
        return energy_per_token_j([trial])
    return cost_per_million(side, [trial], run.measurement.price_per_hour)
