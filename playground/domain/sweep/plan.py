"""A sweep: comparisons over the values of one or two knobs, in an order that restarts as few engines as it can.

Or a search: only some of the combinations of up to four knobs, chosen as it goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import prod
from operator import and_
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import Run, Status
from playground.domain.refusal import refused
from playground.domain.spec.case import Case
from playground.domain.spec.change import Value
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.spec.settings import EngineSettings, Frozen
from playground.domain.stats.rounds import whole_rounds

from .knobs import ENGINE_KNOBS, NAMES, changed

MOST_VALUES = 64
MOST_POINTS = 256
# So many knobs may a sweep of all their combinations vary.
MOST_SWEPT = 2
MOST_SEARCHED = 4
# A search measures at most as often as every third of the combinations, but not less than this.
SEARCHED = 3
LEAST_SEARCHED = 3
# Of that, so large a part are second looks at the best ones; looking at a single one again decides nothing.
LOOKS = 4
FEWEST_LOOKS, MOST_LOOKS = 2, 3
RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)(?:([+*])([\d.]+))?")
WORDS: dict[str, Value] = {"true": True, "on": True, "false": False, "off": False, "default": None}


class Knob(Frozen):
    """A knob's name, its values, and the side it belongs to; None: each side that has it, or the workload."""

    name: Annotated[str, Field(min_length=1)]
    values: Annotated[tuple[Value, ...], Field(min_length=1, max_length=MOST_VALUES)]
    side: str | None = None

    @field_validator("values")
    @classmethod
    def _each_once(cls, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(values))

    @property
    def key(self) -> str:
        """As it is typed: "B.k", or "concurrency"."""
        return f"{self.side}.{self.name}" if self.side else self.name

    @property
    def of_engines(self) -> bool:
        """Whether it is a setting that can be deployed, not a circumstance."""
        return self.name in ENGINE_KNOBS


class SweepPlan(Frozen):
    """Which knobs, and how many seconds the whole may take, engine starts included.

    `search`: look for the best combination without measuring them all.
    """

    knobs: Annotated[tuple[Knob, ...], Field(min_length=1, max_length=MOST_SEARCHED)]
    budget_s: Annotated[float, Field(gt=0, le=7 * 86400)] = 3600
    search: bool = False

    @model_validator(mode="after")
    def _knobs_fit(self) -> SweepPlan:
        if len({knob.key for knob in self.knobs}) < len(self.knobs):
            raise refused("accepted.knobs_differ", "knobs")
        if len(self.knobs) > MOST_SWEPT and not self.search:
            raise refused("accepted.fewer_knobs", "knobs", most=MOST_SWEPT)
        return self

    @property
    def combinations(self) -> int:
        return prod(len(knob.values) for knob in self.knobs)

    @property
    def most_points(self) -> int:
        """How many measurements there are at most, a search's second looks among them."""
        if not self.search:
            return self.combinations
        return min(self.combinations, max(LEAST_SEARCHED, self.combinations // SEARCHED))

    @property
    def looks(self) -> int:
        """How many of a search's points are measured once more, at most."""
        looks = min(self.most_points // LOOKS, MOST_LOOKS) if self.search else 0
        return looks if looks >= FEWEST_LOOKS else 0

    @property
    def most_explored(self) -> int:
        """How many different points are measured at most."""
        return self.most_points - self.looks


@dataclass(frozen=True, slots=True)
class Point:
    """One comparison of a sweep; `number` counts in the order of the values, `values` go with the plan's knobs."""

    number: int
    values: tuple[Value, ...]
    case: Case


@dataclass(slots=True)
class PointRecord:
    """What the history keeps of a point: its run, once there is one."""

    number: int
    values: tuple[Value, ...]
    run: Run | None = None
    # What `sweep_results.result_of` made of a settled run: every chunk of it is read once.
    result: object = field(default=None, repr=False, compare=False)

    @property
    def settled(self) -> bool:
        """Nothing more to do: it was measured, or it failed, which is a result too."""
        return self.run is not None and self.run.status in ("done", "failed")


@dataclass(slots=True)
class Sweep:
    """What the history keeps of a sweep: what it starts from (`case`), and its points, in the values' order."""

    id: str
    created_at: str
    plan: SweepPlan
    case: Case
    points: list[PointRecord] = field(default_factory=list)
    preset: str | None = None
    status: Status = "running"
    problem: Message | None = None

    @property
    def asked(self) -> str:
        """In a few words: the knobs and how many values each has."""
        return " x ".join(f"{knob.key} ({len(knob.values)})" for knob in self.plan.knobs)

    @property
    def left(self) -> int:
        """How many measurements are still to come; of a search under way at most."""
        if self.plan.search and self.status == "done":
            return 0
        done = sum(map(self.measured, self.points)) + sum(map(self.looked_at_again, self.points))
        return self.plan.most_points - done

    def measured(self, point: PointRecord) -> bool:
        """Whether the point is settled, and had the time that it needed."""
        return point.settled and not self.cut_short(point)

    def cut_short(self, point: PointRecord) -> bool:
        """Whether the sweep's time left the point fewer rounds than an interval needs."""
        run = point.run
        if run is None or run.measurement is None or run.status != "done":
            return False
        return run.measurement.budget_s < self.case.measurement.budget_s and whole_rounds(run) < MIN_ROUNDS

    def looked_at_again(self, point: PointRecord) -> bool:
        """Whether a search measured it for a second time: not only as long as it takes to know where to go on."""
        run = point.run
        if run is None or run.measurement is None or run.status != "done":
            return False
        return self.plan.search and run.measurement.max_rounds > MIN_ROUNDS


def parsed_knob(text: str) -> Knob:
    """[SIDE.]NAME=V1,V2,... where a value may be a range: 1..10, 16..64+16, 1..64*2. Raises InvalidInput."""
    # A side's label and a value may have equals signs of their own: the knob's is the last after a known name.
    ends = [found.start() for found in re.finditer("=", text)]
    splits = [(*text[:end].strip().rpartition("."), text[end + 1 :]) for end in reversed(ends)]
    split = next((one for one in splits if one[2] in NAMES), splits[0] if splits else None)
    if split is None or not split[2]:
        raise InvalidInput("sweep.bad_knob", text=text)
    side, _, name, values = split
    return Knob(name=name, values=parsed_values(name, values), side=side or None)


def parsed_values(name: str, text: str) -> tuple[Value, ...]:
    """The values of knob `name`, from a list of values and ranges. Raises InvalidInput."""
    found = [value for item in text.split(",") if item.strip() for value in _values(name, item.strip())]
    if not 1 <= len(found) <= MOST_VALUES:
        raise InvalidInput("sweep.bad_values", knob=name, most=MOST_VALUES)
    return tuple(found)


def _values(name: str, item: str) -> list[Value]:
    found = RANGE.fullmatch(item)
    if found is None:
        return [_value(item)]
    first, last = _number(found[1]), _number(found[2])
    sign, step = found[3] or "+", _number(found[4] or "1")
    # A range that does not end, or not soon.
    if first is None or last is None or step is None or step <= (1 if sign == "*" else 0) or first > last:
        raise InvalidInput("sweep.bad_range", knob=name, range=item)
    if sign == "*" and first <= 0:
        raise InvalidInput("sweep.bad_range", knob=name, range=item)
    values: list[Value] = []
    # One too many is enough to know.
    while first <= last + 1e-9 and len(values) <= MOST_VALUES:
        values.append(round(first, 10) if isinstance(first, float) else first)
        first = first * step if sign == "*" else first + step
    return values


def value_text(value: Value) -> str:
    """A value as it is typed."""
    if value is None:
        return "default"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str) -> Value:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None


def points_of(plan: SweepPlan, case: Case) -> list[Point]:
    """Every combination of the values. Raises InvalidInput for a knob or value that the case does not allow."""
    if plan.combinations > MOST_POINTS:
        raise InvalidInput("sweep.too_many_points", points=plan.combinations, most=MOST_POINTS)
    if plan.search and (given := next((knob for knob in plan.knobs if not knob.of_engines), None)):
        raise InvalidInput("search.circumstance", knob=given.key)
    points = []
    for number, values in enumerate(product(*(knob.values for knob in plan.knobs))):
        turns = list(zip(plan.knobs, values, strict=True))
        own = _turned(case, turns)
        # Where the order matters one knob undoes another, and the point would not be what it says.
        if len(turns) > 1 and _turned(case, turns[::-1]) != own:
            clash = ", ".join(f"{knob.key} = {value_text(value)}" for knob, value in turns)
            raise InvalidInput("sweep.knobs_clash", knobs=clash)
        points.append(Point(number, values, own))
    return points


def _turned(case: Case, turns: Sequence[tuple[Knob, Value]]) -> Case:
    for knob, value in turns:
        case = changed(case, knob.name, value, knob.side)
    return case


def engines_of(case: Case) -> Counter[EngineSettings]:
    """The engines that a comparison needs; two equal sides are two engines."""
    return Counter(side.engine for side in case.sides if isinstance(side.engine, EngineSettings))


def ordered(points: Sequence[Point]) -> list[Point]:
    """Each time the point that needs the fewest new engines; of those the first."""
    # Numbers in place of settings: comparing those takes long, and each is compared with each.
    known: dict[EngineSettings, int] = {}
    needed = {
        point.number: Counter(known.setdefault(engine, len(known)) for engine in engines_of(point.case).elements())
        for point in points
    }
    left, path, running = {point.number: point for point in points}, list[Point](), Counter[int]()
    while left:
        following = min(left, key=lambda number: ((needed[number] - running).total(), number))
        path.append(left.pop(following))
        running = needed[following]
    return path


def engine_starts(path: Sequence[Point], running: Counter[EngineSettings] | None = None) -> int:
    """How many engines start when the points are measured in this order, these running before."""
    count, running = 0, running or Counter()
    for point in path:
        wanted = engines_of(point.case)
        count += (wanted - running).total()
        running = wanted
    return count


def most_starts(points: Sequence[Point], count: int, running: Counter[EngineSettings]) -> int:
    """How many engines start at most when `count` of the points are measured in whatever order."""
    needed = [engines_of(point.case) for point in points]
    if not needed or not count:
        return 0
    kept = reduce(and_, needed)
    return (kept - running).total() + count * (needed[0] - kept).total()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep will take at most: `start_s` an engine, `point_s` a point beside that, in seconds.

    `fitting`: how many of the points there is time for; `total_s`: of those.
    `known_starts`: how many earlier starts on this host the first figure is the median of; 0: a rule of thumb.
    """

    points: int
    fitting: int
    engine_starts: int
    start_s: float
    known_starts: int
    point_s: float
    total_s: float
