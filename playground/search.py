"""Which point of a sweep to measure next, where not all are to be measured: Optuna proposes, by those that were.

With the same few points its Gaussian process comes nearer to a grid's best than its other samplers: see
benchmarks/search.py. A proposal follows from the results alone, so that a search that goes on later takes the way
that it would have taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .domain.changes import Value
from .domain.settings import EngineSettings
from .domain.sweep import Knob, Point, PointRecord, Sweep, engines_of, most_starts, points_of
from .domain.sweep_results import merits, result_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

# A log: 1%. After so many points that are not better by so much than all before them, the search ends.
BETTER = 0.01
PATIENCE = 8
SEED = 1

Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """One knob's values: by size where all are numbers, else words, of which none is near to another."""

    values: tuple[Value, ...]
    ordinal: bool

    @classmethod
    def of(cls, knob: Knob) -> Axis:
        numbers = [
            value for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        if len(numbers) < len(knob.values):
            return cls(knob.values, ordinal=False)
        return cls(tuple(sorted(numbers)), ordinal=True)

    def distance(self, one: int, other: int) -> float:
        """From 0 to 1."""
        if not self.ordinal:
            return float(one != other)
        return abs(one - other) / max(len(self.values) - 1, 1)


class Search:
    """The order of a search: `take` a point, `learn` what it came to."""

    def __init__(self, sweep: Sweep, sampler: Callable[[int], BaseSampler] | None = None) -> None:
        self._sweep = sweep
        self._sampler = sampler or gaussian_process
        self._left = {point.number: point for point in points_of(sweep.plan, sweep.case)}
        self._axes = [Axis.of(knob) for knob in sweep.plan.knobs]
        # In the order in which they were measured. None: failed, or nothing was good.
        self._worth: dict[Place, float | None] = {}
        known = [(point.run.id, point) for point in sweep.points if point.settled and point.run is not None]
        for _, point in sorted(known, key=lambda item: item[0]):
            self.learn(point)

    @property
    def left(self) -> list[Point]:
        """The points that may still be taken."""
        return list(self._left.values()) if self.most else []

    @property
    def most(self) -> int:
        """How many points will still be taken at most."""
        plan = self._sweep.plan
        taken = plan.combinations - len(self._left)
        return 0 if enough(list(self._worth.values())) else max(plan.most_points - taken, 0)

    def starts(self, running: Counter[EngineSettings]) -> int:
        """How many engines start for them at most."""
        return most_starts(self.left, self.most, running)

    def learn(self, record: PointRecord) -> None:
        """Take in what a point came to. Reads its whole run."""
        found = merits(self._sweep, result_of(record))
        self.tell(record, found[0].log if found else None)

    def tell(self, point: PointRecord | Point, worth: float | None) -> None:
        """Take in a point's worth: a log that rises with it; None: it failed."""
        self._left.pop(point.number, None)
        self._worth[self._place(point.values)] = worth

    def take(self, running: Counter[EngineSettings]) -> Point | None:
        """The point to measure now, or None where further ones are unlikely to pay.

        It is the one nearest to what Optuna proposes; of equally near ones that which starts the fewest engines.
        """
        if not self.left:
            return None
        wanted = proposal(self._axes, self._worth, self._sampler(len(self._worth)))

        def cost(point: Point) -> tuple[float, int]:
            steps = zip(self._axes, self._place(point.values), wanted, strict=True)
            distance = sum(axis.distance(one, other) ** 2 for axis, one, other in steps)
            return distance, (engines_of(point.case) - running).total()

        return self._left.pop(min(self.left, key=cost).number)

    def _place(self, values: Sequence[Value]) -> Place:
        return tuple(axis.values.index(value) for axis, value in zip(self._axes, values, strict=True))


def enough(worth: Sequence[float | None]) -> bool:
    """Whether the last points, in the order in which they were measured, were no better than those before."""
    before, last = worth[:-PATIENCE], worth[-PATIENCE:]
    best = max((value for value in before if value is not None), default=None)
    return best is not None and all(value is None or value < best + BETTER for value in last)


def gaussian_process(known: int) -> BaseSampler:
    """The sampler of the proposal after so many points: the same lots are drawn where the results are the same."""
    # It takes a second to import, which only a search need wait for.
    from optuna.samplers import GPSampler

    return GPSampler(seed=SEED + known, n_startup_trials=1)


def proposal(axes: Sequence[Axis], worth: Mapping[Place, float | None], sampler: BaseSampler) -> Place:
    """Where Optuna expects the greatest gain; the middle to begin with. It may be a place that was measured."""
    import optuna

    if not worth:
        return tuple(len(axis.values) // 2 if axis.ordinal else 0 for axis in axes)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = {str(number): _distribution(axis) for number, axis in enumerate(axes)}
    # A failed point counts as bad as the worst of the others: the sampler would pass over a failed trial.
    worst = min((value for value in worth.values() if value is not None), default=0.0)
    for place, value in worth.items():
        params = {str(number): index for number, index in enumerate(place)}
        told = worst if value is None else value
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=told))
    asked = study.ask(fixed_distributions=space).params
    return tuple(asked[str(number)] for number in range(len(axes)))


def _distribution(axis: Axis) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    last = len(axis.values) - 1
    return IntDistribution(0, last) if axis.ordinal else CategoricalDistribution(range(last + 1))
