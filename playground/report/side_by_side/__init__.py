"""Runs of the history beside each other: what differs, how the figures compare, and why they may not be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.differences import Difference, differences
from playground.domain.record.figures import Distribution, SideFigures
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run
from playground.domain.spec.workload import Objective
from playground.domain.stats.expenses import Expense, by_round
from playground.domain.stats.ratios import Ratio, quotient
from playground.domain.stats.repetition import Repetition
from playground.domain.stats.rounds import rounds_of, run_verdicts

MOST_RUNS = 4
# The figures in reading order, with what each round has of it, for an interval.
FIGURES: dict[str, Objective | Expense | None] = {
    "tpot_ms": "tpot",
    "ttft_ms": "ttft",
    "output_tokens_per_s": "throughput",
    "energy_per_output_token_j": "energy_per_output_token_j",
    "cost_per_million_output_tokens": "cost_per_million_output_tokens",
    "acceptance_rate": None,
}
PROMPTS = ("prompt", "system", "turns", "prompts", "prompts_sent")
# A new driver or kernel makes no other machine.
MACHINE = {"machine.cpu", "machine.cores", "machine.memory_bytes", "machine.gpus"}
RUN_ON = re.compile(r"^(machine\..*|preset|[A-D]\.(runtime_version|device|placement|label|path\..*))$")


@dataclass(frozen=True, slots=True)
class ComparedRatio:
    """A run's figure divided by the first run's. `interval`: 95%, by the rounds of both; None without enough. What
    varies from one run to the next is not in it."""

    ratio: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of the sides at one place. `labels` and `values` are each run's, `ratios` those of the runs after
    the first. `figure`: a field of SideFigures, or "speed_up" for the side's verdict."""

    figure: str
    labels: tuple[str | None, ...]
    values: tuple[float | None, ...]
    ratios: tuple[ComparedRatio | None, ...]


@dataclass(frozen=True)
class SideBySide:
    runs: tuple[Run, ...]
    differences: list[Difference]
    rows: list[Row]
    warnings: list[Message]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> SideBySide:
        """Raises InvalidInput for fewer than two runs or more than MOST_RUNS."""
        if not 2 <= len(runs) <= MOST_RUNS:
            raise InvalidInput("beside.count", least=2, most=MOST_RUNS)
        differing = differences(runs)
        return cls(tuple(runs), differing, list(_rows(runs)), list(_warnings(runs, differing)))

    @property
    def repetition(self) -> bool:
        """Whether all had the same settings and work: only versions and the machine may differ."""
        ours = all(run.mode != "imported" for run in self.runs)
        return ours and all(RUN_ON.search(item.key) for item in self.differences)

    @property
    def objective(self) -> Objective:
        return self.runs[0].workload.objective

    @cached_property
    def changes(self) -> Repetition:
        """Whether they came to the same."""
        return Repetition.of(self.runs)


def _rows(runs: Sequence[Run]) -> Iterator[Row]:
    for place in range(max(len(run.sides) for run in runs)):
        sides = [run.sides[place] if place < len(run.sides) else None for run in runs]
        labels = tuple(side.label if side else None for side in sides)
        pairs = zip(sides, runs, strict=True)
        figures = [side_figures(side, run.measurement) if side else None for side, run in pairs]
        for figure, by in FIGURES.items():
            values = tuple(_value(of_side, figure) for of_side in figures)
            by_rounds = [_of_rounds(run, place, by) for run in runs]
            if any(value is not None for value in values):
                yield Row(figure, labels, values, _ratios(values, by_rounds))
        verdicts = [_verdict(run, place) for run in runs]
        values = tuple(ratio.value if ratio else None for ratio in verdicts)
        if any(verdicts):
            yield Row("speed_up", labels, values, _ratios(values, verdicts))


def _value(figures: SideFigures | None, name: str) -> float | None:
    value = getattr(figures, name) if figures is not None else None
    return value.mean if isinstance(value, Distribution) else value


def _of_rounds(run: Run, place: int, by: Objective | Expense | None) -> Ratio | None:
    if by is None or place >= len(run.sides):
        return None
    side = run.sides[place]
    if by == "energy_per_output_token_j" or by == "cost_per_million_output_tokens":
        return Ratio.of_values(by_round(run, side, by))
    return Ratio.of_values([item.values[side.label] for item in rounds_of(run, by)])


def _verdict(run: Run, place: int) -> Ratio | None:
    verdicts = run_verdicts(run, rounds_of(run))
    return Ratio.of_verdict(verdicts[place - 1]) if 0 < place <= len(verdicts) else None


def _ratios(values: Sequence[float | None], by_rounds: Sequence[Ratio | None]) -> tuple[ComparedRatio | None, ...]:
    ratios: list[ComparedRatio | None] = []
    for value, rounds in zip(values[1:], by_rounds[1:], strict=True):
        if rounds is not None and by_rounds[0] is not None:
            compared = quotient(rounds, by_rounds[0])
            ratios.append(ComparedRatio(compared.value, compared.interval))
        elif value is not None and values[0]:
            ratios.append(ComparedRatio(value / values[0]))
        else:
            ratios.append(None)
    return tuple(ratios)


def _warnings(runs: Sequence[Run], differing: Sequence[Difference]) -> Iterator[Message]:
    """Why the figures can't be compared, or only with care."""
    keys = {difference.key for difference in differing}
    if {"race", "measured"} <= {run.mode for run in runs}:
        yield Message("beside.modes")
    if keys & MACHINE:
        yield Message("beside.machines")
    # What sent nothing has failed, which is said.
    sent = {
        difference.key
        for difference in differing
        if None not in difference.values or difference.key != "prompts_sent"
    }
    if any(key.rpartition(".")[2] in PROMPTS for key in sent):
        yield Message("beside.prompts")
    if any(key.startswith(("workload.sampling.", "measurement.profile.")) for key in keys):
        yield Message("beside.load")
    tools = dict.fromkeys(side.reported.tool for run in runs for side in run.sides if side.reported is not None)
    yield from (Message(f"reported.{tool}") for tool in tools)
    for run in runs:
        yield from _of_run(run)
    if any(run.measurement is None for run in runs):
        yield Message("beside.no_interval")


def _of_run(run: Run) -> Iterator[Message]:
    if run.mode == "imported":
        yield Message("beside.imported", {"id": run.id, "tool": run.sides[0].placement})
    if run.status != "done":
        yield Message("beside.unended", {"id": run.id})
    if run.measurement is None and any(side.contended for side in run.sides):
        yield Message("beside.contended", {"id": run.id})
