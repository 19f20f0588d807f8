"""A schedule of k by the size of the batch, from a sweep of k and concurrency, and what measures it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, log

from playground.domain.message import Message
from playground.domain.spec.case import Case, Side
from playground.domain.spec.difference import without
from playground.domain.spec.settings import EngineSettings
from playground.domain.speculation.theory import best_k

from .knobs import with_k
from .plan import Knob, SweepPlan
from .record import Sweep
from .series import K_NAMES, SpeculationSeries

Range = tuple[int, int, int]
KEY = "num_speculative_tokens_per_batch_size"


@dataclass(frozen=True, slots=True)
class Schedule:
    """`ranges`: [first, last, k] of the batch's size, k = 0 for no speculation; vLLM carries the last k on beyond
    them. `single_k` is the best for all measured concurrencies together, and `concurrencies` are those."""

    side: str
    ranges: tuple[Range, ...]
    single_k: int
    concurrencies: tuple[int, ...]

    @property
    def message(self) -> Message:
        *parts, text = [_range(part, last=part == self.ranges[-1]) for part in self.ranges]
        for part in reversed(parts):
            text = Message("path.and", {"first": part, "second": text})
        return Message("sweep.schedule", {"side": self.side, "ranges": text, "single": self.single_k})

    def engine(self, settings: EngineSettings) -> EngineSettings:
        """The settings with this schedule."""
        return _drafting(settings, max(k for _, _, k in self.ranges), self.ranges)

    def measurement(self, sweep: Sweep) -> tuple[SweepPlan, Case]:
        """A sweep of the concurrency over speculation off, the best single k, and the schedule."""
        side = next(side for side in sweep.case.sides if side.label == self.side)
        assert isinstance(side.engine, EngineSettings)
        name = without(side, K_NAMES)
        single = {"label": f"{name}, k = {self.single_k}", "engine": _drafting(side.engine, self.single_k, None)}
        varied = {"label": f"{name}, k by batch", "engine": self.engine(side.engine)}
        sides: tuple[Side, ...] = (sweep.case.sides[0], *(side.model_copy(update=of) for of in (single, varied)))
        plan = SweepPlan(
            knobs=(Knob(name="concurrency", values=self.concurrencies),), budget_s=sweep.plan.budget_s
        )
        return plan, sweep.case.model_copy(update={"sides": sides})


def proposed(sweep: Sweep, series: Sequence[SpeculationSeries]) -> Schedule | None:
    """The schedule of the first side whose k was varied with the concurrency; None where one k, or none, is best
    everywhere, or too little is known."""
    names = [knob.name for knob in sweep.plan.knobs]
    if len(names) != 2 or "concurrency" not in names:
        return None
    for label in dict.fromkeys(group.label for group in series if group.k_index is not None):
        groups = {group.others[0]: group for group in series if group.label == label and group.k_index is not None}
        best = {}
        for concurrency, group in groups.items():
            k = best_k(list(group.points.values())).k
            if k is not None and isinstance(concurrency, int):
                best[concurrency] = 0 if k == "off" else k
        if len(set(best.values())) > 1:
            measured = tuple(sorted(best))
            return Schedule(label, _ranges(best), _single([groups[value] for value in measured]), measured)
    return None


def _ranges(best: dict[int, int]) -> tuple[Range, ...]:
    """Between two measured sizes the border is their geometric mean; neighbours of one k are one range."""
    sizes = sorted(best)
    ranges: list[Range] = []
    for size, following in zip(sizes, [*sizes[1:], None], strict=True):
        last = size if following is None else min(max(isqrt(size * following), size), following - 1)
        if ranges and ranges[-1][2] == best[size]:
            ranges[-1] = (ranges[-1][0], last, best[size])
        else:
            ranges.append((ranges[-1][1] + 1 if ranges else 1, last, best[size]))
    return tuple(ranges)


def _range(part: Range, *, last: bool) -> Message:
    first, end, k = part
    sizes = f"{first}+" if last else str(first) if first == end else f"{first}-{end}"
    return Message("sweep.range" if k else "sweep.range_off", {"sizes": sizes, "k": k})


def _single(groups: Sequence[SpeculationSeries]) -> int:
    """The k with the best geometric mean of the speed-ups, of those that were measured at every concurrency."""
    gains = [{point.k: log(point.speed_up) for point in group.points.values()} for group in groups]
    common = set.intersection(*map(set, gains)) or set(gains[0])
    return max(common, key=lambda k: sum(gain.get(k, 0.0) for gain in gains))


def _drafting(settings: EngineSettings, k: int, ranges: tuple[Range, ...] | None) -> EngineSettings:
    drafting = with_k(settings, k)
    return drafting.model_copy(update={"speculation": drafting.speculation.model_copy(update={KEY: ranges})})
