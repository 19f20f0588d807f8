"""Which places take a sweep's points, and what they lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from playground.domain.message import Message
from playground.domain.sweep.plan import Point

from .place import Place

# How often a point that a place lost is taken again; after how many lost in a row a place is used no more.
MOST_RETRIES, MOST_STRIKES = 2, 2


class Places:
    """The places that are left, or, where there are none from the start, this host (None).

    `lost`: points to be taken once more, with the place that lost them. `problem`: the last error, once no place
    is left. `anchored`: where the first point need not be repeated.
    """

    def __init__(self, places: Sequence[Place], *, one_at_a_time: bool) -> None:
        self.lost: list[tuple[Point, Place]] = []
        self.problem: Message | None = None
        self.anchored = set[Place]()
        self._left: list[Place | None] = [*places] or [None]
        self._one_at_a_time = one_at_a_time
        # How often each point was lost, by its number, and how many each place lost in a row.
        self._losses: Counter[int] = Counter()
        self._strikes: Counter[Place] = Counter()

    @property
    def here(self) -> bool:
        return self._left == [None]

    @property
    def in_use(self) -> list[Place | None]:
        return self._left[:1] if self._one_at_a_time else self._left[:]

    def begin(self, *, with_first: bool) -> None:
        """`with_first`: the first place begins with the sweep's first point. A single place has none to be
        compared with."""
        places = [place for place in self.in_use if place is not None]
        self.anchored = {*places[:1]} if with_first or len(places) == 1 else set()

    def retaken(self, place: Place | None) -> Point | None:
        """A point that another place lost; one that this place lost if there is no other."""
        for index, (point, loser) in enumerate(self.lost):
            if loser is not place or len(self.in_use) == 1:
                del self.lost[index]
                return point
        return None

    def lose(self, point: Point, place: Place, problem: Message | None) -> bool:
        """Note that the place brought no result; whether the point is to be taken once more."""
        self.strike(place, problem)
        self._losses[point.number] += 1
        if point.number == 0 and len(self.in_use) > 1:
            # Another place measures it.
            self.anchored.discard(place)
        again = self._losses[point.number] <= MOST_RETRIES
        if again:
            self.lost.append((point, place))
        return again

    def strike(self, place: Place, problem: Message | None) -> None:
        """Use the place no more if it has lost too many in a row."""
        self._strikes[place] += 1
        if self._strikes[place] >= MOST_STRIKES and place in self._left:
            self._left.remove(place)
            if not self._left:
                self.problem = Message("elsewhere.none_left", {"cause": problem})

    def delivered(self, place: Place) -> None:
        self._strikes[place] = 0
