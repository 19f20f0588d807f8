"""Knobs and their values as people type them."""

from __future__ import annotations

import re
from itertools import islice

from playground.domain.errors import InvalidInput
from playground.domain.spec.change import Value

from .knobs import NAMES
from .plan import MOST_VALUES, Knob

RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)(?:([+*])([\d.]+))?")
WORDS: dict[str, Value] = {"true": True, "on": True, "false": False, "off": False, "default": None}


def parsed_knob(text: str) -> Knob:
    """[SIDE.]NAME=V1,V2,... where a value may be a range: 1..10, 16..64+16, 1..64*2. Raises InvalidInput."""
    # A side's label and a value may have equals signs of their own: the knob's is the last after a known name.
    ends = [match.start() for match in re.finditer("=", text)]
    splits = [(*text[:end].strip().rpartition("."), text[end + 1 :]) for end in reversed(ends)]
    split = next((parts for parts in splits if parts[2] in NAMES), splits[0] if splits else None)
    if split is None or not split[2]:
        raise InvalidInput("sweep.bad_knob", text=text)
    side, _, name, values = split
    return Knob(name=name, values=parsed_values(name, values), side=side or None)


def parsed_values(name: str, text: str) -> tuple[Value, ...]:
    """The values of knob `name`, from a list of values and ranges. Raises InvalidInput."""
    every = (value for item in text.split(",") if item.strip() for value in _values(name, item.strip()))
    # One too many is enough to know: many ranges would make very many values.
    values = tuple(islice(every, MOST_VALUES + 1))
    if not 1 <= len(values) <= MOST_VALUES:
        raise InvalidInput("sweep.bad_values", knob=name, most=MOST_VALUES)
    return values


def _values(name: str, item: str) -> list[Value]:
    match = RANGE.fullmatch(item)
    if match is None:
        return [_value(item)]
    first, last = _number(match[1]), _number(match[2])
    sign, step = match[3] or "+", _number(match[4] or "1")
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
