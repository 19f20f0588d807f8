"""A sweep's plan: which knobs it turns, and the comparisons over all combinations of their values.

A search measures only some of the combinations, of up to four knobs, and chooses them as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from playground.domain.errors import InvalidInput
from playground.domain.spec.case import Case
from playground.domain.spec.change import Value
from playground.domain.spec.fields import Frozen
from playground.domain.validation import refused

from .knobs import ENGINE_KNOBS, changed

MOST_VALUES = 64
MOST_POINTS = 256
# A sweep of all combinations varies at most so many knobs.
MOST_SWEPT = 2
MOST_SEARCHED = 4
# A search measures at most one in so many of the combinations, but not fewer than LEAST_SEARCHED.
SEARCH_SHARE = 3
LEAST_SEARCHED = 3
# One in so many of its measurements repeats one of the best points; to repeat a single point decides nothing.
REPEAT_SHARE = 4
LEAST_REPEATS, MOST_REPEATS = 2, 3


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
        """The knob as it is typed: "B.k", or "concurrency"."""
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
        """How many measurements there are at most, a search's repetitions among them."""
        if not self.search:
            return self.combinations
        return min(self.combinations, max(LEAST_SEARCHED, self.combinations // SEARCH_SHARE))

    @property
    def repeats(self) -> int:
        """How many of a search's points are measured once more, at most."""
        repeats = min(self.most_points // REPEAT_SHARE, MOST_REPEATS) if self.search else 0
        return repeats if repeats >= LEAST_REPEATS else 0

    @property
    def most_explored(self) -> int:
        """How many different points are measured at most."""
        return self.most_points - self.repeats

    def described(self, values: Sequence[Value]) -> str:
        """The knobs with these values, as they are typed."""
        return ", ".join(
            f"{knob.key} = {value_text(value)}" for knob, value in zip(self.knobs, values, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Point:
    """One comparison of a sweep; `number` counts in the order of the values, `values` go with the plan's knobs."""

    number: int
    values: tuple[Value, ...]
    case: Case


def value_text(value: Value) -> str:
    """A value as it is typed."""
    if value is None:
        return "default"
    return str(value).lower() if isinstance(value, bool) else str(value)


def points_of(plan: SweepPlan, case: Case) -> list[Point]:
    """Every combination of the values. Raises InvalidInput for a knob or value that the case does not allow."""
    if plan.combinations > MOST_POINTS:
        raise InvalidInput("sweep.too_many_points", points=plan.combinations, most=MOST_POINTS)
    circumstance = next((knob for knob in plan.knobs if not knob.of_engines), None)
    if plan.search and circumstance is not None:
        raise InvalidInput("search.circumstance", knob=circumstance.key)
    points = []
    for number, values in enumerate(product(*(knob.values for knob in plan.knobs))):
        settings = list(zip(plan.knobs, values, strict=True))
        changed_case = _with_all(case, settings)
        # Where the order matters one knob undoes another, and the point would not have these values.
        if len(settings) > 1 and _with_all(case, settings[::-1]) != changed_case:
            raise InvalidInput("sweep.knobs_clash", knobs=plan.described(values))
        points.append(Point(number, values, changed_case))
    return points


def _with_all(case: Case, settings: Sequence[tuple[Knob, Value]]) -> Case:
    for knob, value in settings:
        case = changed(case, knob.name, value, knob.side)
    return case
