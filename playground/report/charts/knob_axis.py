"""A knob as an axis: numeric where all its values are numbers, else evenly spaced."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import log, log10
from typing import Any

from playground.domain.spec.change import Value
from playground.domain.sweep.plan import Knob, value_text

# Limits of the room under an axis: ticks, and characters of each.
MOST_TICKS = 16
LONGEST = 20
# The margin of an axis beyond its outermost values.
MARGIN = 0.06


class KnobAxis:
    """`even`: places are evenly spaced whatever the values are, as a map's cells."""

    def __init__(self, knob: Knob, *, even: bool = False) -> None:
        self.knob = knob
        numbers = [
            float(value) for value in knob.values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        self.numeric = not even and len(numbers) == len(knob.values)
        # On an even axis numbers are in ascending order, however they were typed.
        ranked = sorted(numbers) if len(numbers) == len(knob.values) else []
        ranks = [float(ranked.index(number)) for number in numbers] if ranked else []
        self._places = numbers if self.numeric else ranks or [float(i) for i in range(len(knob.values))]
        self._log = self.numeric and _geometric(sorted(numbers))

    def at(self, value: Value) -> float:
        """The place of a value of the knob."""
        return self._places[self.knob.values.index(value)]

    def layout(self) -> dict[str, Any]:
        """The layout of the figure's axis."""
        axis: dict[str, Any] = {"title": {"text": escape(self.knob.key), "standoff": 4}, "automargin": True}
        axis |= {"rangemode": "normal", "type": "log" if self._log else "linear"}
        if not self.numeric or len(self._places) <= MOST_TICKS:
            texts = [short(value) for value in self.knob.values]
            axis |= {"tickmode": "array", "tickvals": self._places, "ticktext": texts}
        if not self.numeric:
            axis["range"] = [-0.5, len(self._places) - 0.5]
        elif len(self._places) > 1:
            # It spans all the knob's values, measured or not, so that figures over one knob can be compared at a
            # glance.
            first, last = (log10(end) if self._log else end for end in (min(self._places), max(self._places)))
            axis["range"] = [first - MARGIN * (last - first), last + MARGIN * (last - first)]
        return axis


def short(value: Value) -> str:
    """The value as it is typed; of a long one only the end, where models of one family differ."""
    text = value_text(value)
    return escape(text if len(text) <= LONGEST else f"…{text[-LONGEST:]}")


def _geometric(ascending: Sequence[float]) -> bool:
    """Whether the values' logs are spaced more evenly than the values."""
    if len(ascending) < 3 or ascending[0] <= 0:
        return False
    return _unevenness([log(value) for value in ascending]) < _unevenness(ascending)


def _unevenness(ascending: Sequence[float]) -> float:
    gaps = [later - earlier for earlier, later in pairwise(ascending)]
    return max(gaps) / min(gaps)
