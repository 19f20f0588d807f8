"""Chooses which point of a sweep to measure next when not all are to be measured. Optuna proposes, from the
results.

With equally few points its Gaussian process comes nearer to a grid's best point than its other samplers: see
benchmarks/search.py. A proposal depends on the results alone, so a search that is resumed proposes the same points
as one that was never interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from playground.domain.spec.change import Value
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.order import engines_of, most_starts
from playground.domain.sweep.plan import LEAST_REPEATS, Knob, Point
from playground.domain.sweep.record import PointRecord, Sweep
from playground.domain.sweep.score import scores

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

# A repeated point gets this many times the rounds of its first measurement.
REPEAT_ROUNDS = 3
# A difference of logs: 5%. Points this near the best may be as good: six rounds can't distinguish them.
NEAR = 0.05
# A difference of logs: 1%. The search ends after PATIENCE points per knob without an improvement this large.
BETTER = 0.01
PATIENCE = 6
SEED = 1

Place = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """One knob's values as places on an axis: numbers by size, words unordered.

    Numbers above 0 are placed by their logs: from 1 to 2 most settings change as much as from 8 to 16.
    """

    places: dict[Value, float]
    ordinal: bool

    @classmethod
    def of(cls, knob: Knob) -> Axis:
        numbers = [
            value for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        if len(numbers) < len(knob.values):
            return cls({value: float(number) for number, value in enumerate(knob.values)}, ordinal=False)
        scale = log if min(numbers) > 0 else float
        return cls({value: scale(value) for value in sorted(numbers)}, ordinal=True)

    @property
    def middle(self) -> Value:
        values = list(self.places)
        return values[len(values) // 2 if self.ordinal else 0]

    @property
    def distribution(self) -> BaseDistribution:
        """The axis as Optuna wants it."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        places = list(self.places.values())
        return FloatDistribution(places[0], places[-1]) if self.ordinal else CategoricalDistribution(places)

    def farthest(self, place: float) -> float:
        """The place farthest from this one."""
        return max(self.places.values(), key=lambda other: self.distance(place, other))

    def distance(self, place: float, other: float) -> float:
        """The distance of two places, from 0 to 1."""
        if not self.ordinal:
            return float(place != other)
        places = list(self.places.values())
        return abs(place - other) / ((places[-1] - places[0]) or 1.0)


class Search:
    """The order of a search: `take` returns a point to measure, `learn` takes its result in.

    After the last new point, those that may be the best are repeated: the best of many noisy figures is partly
    luck.
    """

    def __init__(self, sweep: Sweep, sampler: Callable[[int], BaseSampler] | None = None) -> None:
        self._sweep = sweep
        self._sampler = sampler or gaussian_process
        self._points = {point.number: point for point in sweep.planned}
        self._untried = dict(self._points)
        self._repeated = {point.number for point in sweep.points if sweep.repeated(point)}
        self._axes = [Axis.of(knob) for knob in sweep.plan.knobs]
        self._start = self._place(self._start_values())
        # By number, in the order of measurement. None: the point failed, or no side has a score.
        self._worth: dict[int, float | None] = {}
        known = [point for point in sweep.points if sweep.measured(point)]
        for point in sorted(known, key=lambda point: point.run.id if point.run else ""):
            self.learn(point)

    @property
    def candidates(self) -> list[Point]:
        """The points that may still be taken."""
        return list(self._untried.values()) if self._most_new else self._leaders

    @property
    def most(self) -> int:
        """How many points will still be taken at most."""
        new = self._most_new
        return new + self._sweep.plan.repeats if new else len(self._leaders)

    @property
    def _most_new(self) -> int:
        """How many points that were not measured yet will be taken at most."""
        if self._repeated or enough(list(self._worth.values()), len(self._axes)):
            return 0
        return max(self._sweep.plan.most_explored - len(self._points) + len(self._untried), 0)

    @property
    def _leaders(self) -> list[Point]:
        """The points to repeat, the best first; none if only one can be the best."""
        known = {number: worth for number, worth in self._worth.items() if worth is not None}
        near = [number for number in known if known[number] >= max(known.values()) - NEAR]
        # A single leader needs no repetition, unless it leads only because the points ahead of it fell behind in
        # theirs.
        if len(near) < LEAST_REPEATS and not self._repeated:
            return []
        once = sorted(set(near) - self._repeated, key=lambda number: -known[number])
        return [self._points[number] for number in once[: max(self._sweep.plan.repeats - len(self._repeated), 0)]]

    def starts(self, running: Counter[EngineSettings]) -> int:
        """How many engines start for the candidates at most."""
        return most_starts(self.candidates, self.most, running)

    def learn(self, record: PointRecord) -> None:
        """Record the result of a point. Reads its whole run."""
        done = record.run is not None and record.run.status == "done"
        ranked = scores(self._sweep, record.result()) if done else []
        self.tell(record, ranked[0].log if ranked else None)

    def tell(self, point: PointRecord | Point, worth: float | None) -> None:
        """Record a point's worth: a log, higher is better; None: the point failed."""
        self._untried.pop(point.number, None)
        self._worth[point.number] = worth

    def take(self, running: Counter[EngineSettings]) -> Point | None:
        """The point to measure now, or None where further ones are unlikely to pay.

        It is the point nearest to the target; of equally near ones, the one that starts the fewest engines.
        """
        if not self._most_new:
            return self._repeat(running)
        target = self._target()

        def cost(point: Point) -> tuple[float, int]:
            steps = zip(self._axes, self._place(point.values), target, strict=True)
            distance = sum(axis.distance(place, other) ** 2 for axis, place, other in steps)
            return distance, (engines_of(point.case) - running).total()

        return self._untried.pop(min(self.candidates, key=cost).number)

    def _repeat(self, running: Counter[EngineSettings]) -> Point | None:
        """A point to measure again, preferably one whose engines are running."""
        leaders = self._leaders
        if not leaders:
            return None
        point = min(leaders, key=lambda leader: (engines_of(leader.case) - running).total())
        self._repeated.add(point.number)
        return point

    def _target(self) -> Place:
        """First the start, then each knob alone at its farthest value, then what Optuna proposes.

        With so few points, the sampler alone would change all knobs at once, and it would stay unknown which one
        mattered.
        """
        known = len(self._worth)
        if known == 0:
            return self._start
        if known <= len(self._axes):
            turned = self._axes[known - 1].farthest(self._start[known - 1])
            return (*self._start[: known - 1], turned, *self._start[known:])
        measured = {self._place(self._points[number].values): worth for number, worth in self._worth.items()}
        return proposal(self._axes, measured, self._sampler(known))

    def _start_values(self) -> tuple[Value, ...]:
        """What the search starts from: the settings as they are, if that is one of the points, else the middle."""
        middle = tuple(axis.middle for axis in self._axes)
        return next((point.values for point in self._untried.values() if point.case == self._sweep.case), middle)

    def _place(self, values: Sequence[Value]) -> Place:
        return tuple(axis.places[value] for axis, value in zip(self._axes, values, strict=True))


def enough(worth: Sequence[float | None], knobs: int) -> bool:
    """Whether the last points, in the order in which they were measured, were no better than those before."""
    before, last = worth[: -PATIENCE * knobs], worth[-PATIENCE * knobs :]
    best = max((value for value in before if value is not None), default=None)
    return best is not None and all(value is None or value < best + BETTER for value in last)


def gaussian_process(known: int) -> BaseSampler:
    """The sampler for the proposal after `known` points. Equal results give equal proposals."""
    # These imports take seconds, so only a search pays for them.
    import torch
    from optuna.samplers import GPSampler

    # The matrices are small: more threads make it slower, especially beside engines that use all cores.
    torch.set_num_threads(1)
    return GPSampler(seed=SEED + known, n_startup_trials=1)


def proposal(axes: Sequence[Axis], worth: Mapping[Place, float | None], sampler: BaseSampler) -> Place:
    """Where Optuna expects the greatest gain; needs at least one known place. The result may be a measured
    place."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = {str(number): axis.distribution for number, axis in enumerate(axes)}
    # A failed point counts as the worst of the others: the sampler would ignore a failed trial.
    worst = min((value for value in worth.values() if value is not None), default=0.0)
    for place, value in worth.items():
        params = {str(number): value for number, value in enumerate(place)}
        known = worst if value is None else value
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=known))
    proposed = study.ask(fixed_distributions=space).params
    return tuple(proposed[str(number)] for number in range(len(axes)))
