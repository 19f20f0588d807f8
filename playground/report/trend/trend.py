"""How a preset's headline figure went from run to run, and where versions, the machine or settings changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.differences import differences
from playground.domain.record.run import Run
from playground.store import History, Result

MOST_RUNS = 100
# More would hide the sentence: the latest are said.
MOST_SAID = 3

Figure = Literal["speed_up", "output_tokens_per_s"]
Kind = Literal["version", "driver", "machine", "settings"]
# Not labels, which follow settings, nor which cores or card an engine got, which is chance.
SETTINGS = re.compile(r"^(workload|measurement)\.|^[A-D]\.(?!label$|runtime_version$|device$|placement$|path)")


@dataclass(frozen=True, slots=True)
class Point:
    """A run's figure, in times or tokens a second. `interval`: 95%, of a speed-up."""

    run_id: str
    created_at: str
    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What was not the same from point `at` on. `keys`: of settings, as in `differences`; the others have `before`
    and `after`."""

    at: int
    kind: Kind
    before: str | None = None
    after: str | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """The points from the earliest on. A speed-up is of the side that differs most from the first one; tokens a
    second are of the fastest side."""

    preset: str
    figure: Figure
    points: tuple[Point, ...]
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, history: History, preset: str) -> Trend:
        """Of the newest MOST_RUNS runs. Measured ones, if there are any; else races. Raises InvalidInput for a
        preset without runs that ended with a figure. Blocking."""
        if not preset:
            raise InvalidInput("trend.none", preset=preset)
        outlines = [each for each in history.outlines(preset, MOST_RUNS) if each[0].status == "done"]
        races = [each for each in outlines if each[0].mode == "race"]
        measured = [(run, result) for run, result in outlines if result.headline.speed_up is not None]
        figure: Figure = "speed_up" if measured else "output_tokens_per_s"
        drawn = [
            (run, result, point)
            for run, result in measured or races
            if (point := _point(run, result, figure)) is not None
        ]
        if not drawn:
            raise InvalidInput("trend.none", preset=preset)
        changes = _changes([(run, result) for run, result, _ in drawn])
        return cls(preset, figure, tuple(point for *_, point in drawn), tuple(changes))

    @property
    def sentences(self) -> list[Message]:
        """The range, and the latest changes."""
        values = [point.value for point in self.points]
        spread: dict[str, object] = {"low": min(values), "high": max(values), "runs": len(values)}
        latest = self.changes[-MOST_SAID:]
        return [Message(f"trend.{self.figure}", spread), *(self.sentence(change) for change in latest)]

    def sentence(self, change: Change) -> Message:
        params = {"date": self.points[change.at].created_at[:10], "keys": ", ".join(change.keys[:MOST_SAID])}
        return Message(f"trend.{change.kind}", {**params, "before": change.before, "after": change.after})


def _point(run: Run, result: Result, figure: Figure) -> Point | None:
    headline = result.headline
    if figure == "speed_up":
        value, interval = headline.speed_up, headline.interval
    else:
        value, interval = max((rate for rate in headline.rates if rate is not None), default=None), None
    return None if value is None else Point(run.id, run.created_at, value, interval)


def _changes(outlines: Sequence[tuple[Run, Result]]) -> Iterator[Change]:
    for at, ((run, result), (later, later_result)) in enumerate(pairwise(outlines), start=1):
        facts: tuple[tuple[Kind, str | None, str | None], ...] = (
            ("version", result.version, later_result.version),
            ("driver", _driver(run), _driver(later)),
            ("machine", result.machine, later_result.machine),
        )
        # What one of them does not tell may be the same.
        yield from (Change(at, kind, a, b) for kind, a, b in facts if a is not None and b is not None and a != b)
        keys = tuple(item.key for item in differences([run, later]) if SETTINGS.search(item.key))
        if keys:
            yield Change(at, "settings", keys=keys)


def _driver(run: Run) -> str | None:
    return str(run.machine["driver"]) if "driver" in run.machine else None
