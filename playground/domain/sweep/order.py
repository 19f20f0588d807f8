"""The order in which the points of a sweep are measured, so that few engines start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_

from playground.domain.spec.case import Case
from playground.domain.spec.settings import EngineSettings

from .plan import Point
from .record import PointRecord, Sweep


class Grid:
    """The order of a sweep of all combinations: few engines start."""

    def __init__(self, sweep: Sweep) -> None:
        measured = {point.number for point in sweep.points if sweep.measured(point)}
        self.candidates = ordered([point for point in sweep.planned if point.number not in measured])

    @property
    def most(self) -> int:
        """How many points are still to be taken."""
        return len(self.candidates)

    def starts(self, running: Counter[EngineSettings]) -> int:
        """How many engines start for them."""
        return engine_starts(self.candidates, running)

    def take(self, running: Counter[EngineSettings]) -> Point | None:
        """The point to measure now."""
        return self.candidates.pop(0) if self.candidates else None

    def learn(self, record: PointRecord) -> None:
        """Does nothing: the order does not depend on results."""


def engines_of(case: Case) -> Counter[EngineSettings]:
    """The engines that a comparison needs; two equal sides are two engines."""
    return Counter(side.engine for side in case.sides if isinstance(side.engine, EngineSettings))


def ordered(points: Sequence[Point]) -> list[Point]:
    """The points in the order in which to measure them: next comes the first that needs the fewest new engines."""
    # Numbers in place of settings: comparing those takes long, and each is compared with each.
    known: dict[EngineSettings, int] = {}
    needed = {
        point.number: Counter(known.setdefault(engine, len(known)) for engine in engines_of(point.case).elements())
        for point in points
    }
    remaining, path, running = {point.number: point for point in points}, list[Point](), Counter[int]()
    while remaining:
        following = min(remaining, key=lambda number: ((needed[number] - running).total(), number))
        path.append(remaining.pop(following))
        running = needed[following]
    return path


def engine_starts(path: Sequence[Point], running: Counter[EngineSettings] | None = None) -> int:
    """How many engines start when the points are measured in this order, these running before."""
    count, running = 0, running or Counter()
    for point in path:
        needed = engines_of(point.case)
        count += (needed - running).total()
        running = needed
    return count


def most_starts(points: Sequence[Point], count: int, running: Counter[EngineSettings]) -> int:
    """How many engines start at most when `count` of the points are measured in whatever order."""
    needed = [engines_of(point.case) for point in points]
    if not needed or not count:
        return 0
    shared = reduce(and_, needed)
    return (shared - running).total() + count * (needed[0] - shared).total()
