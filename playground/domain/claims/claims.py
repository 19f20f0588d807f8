"""Practitioners' claims about vLLM's settings, and whether a measurement confirms them.

A claim has one or more figures with a threshold each, taken from the articles that make it. It holds where every
figure's whole 95% interval lies on the claimed side of its threshold, and does not hold where one's lies on the
other; else the measurement can't decide. A gain that an article states ("18% more") is read as "at least that
much". As all figures must pass, a claim is wrongly said to hold no more often than a single one passes by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.stats.ratios import Ratio, mean, quotient
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import Sweep

from .ratios import (
    conversations_of,
    latencies,
    latency_ratio,
    mean_answer,
    mean_of,
    measured_at,
    speed_up,
    speed_ups,
)

ClaimName = Literal["batching", "table", "useful_k", "under_load", "continuous", "gpu_memory", "short_requests"]
Standing = Literal["holds", "does not hold", "can't be said here"]
SENTENCES: dict[Standing, str] = {
    "holds": "claim.holds",
    "does not hold": "claim.fails",
    "can't be said here": "claim.open",
}


@dataclass(frozen=True, slots=True)
class ClaimedFigure:
    """One figure of a claim, above `least` or below `most`; with neither it is only reported."""

    ratio: Ratio | None
    least: float | None = None
    most: float | None = None

    @property
    def bound(self) -> float | None:
        return self.most if self.least is None else self.least

    @property
    def standing(self) -> Standing:
        if self.bound is None:
            return "holds"
        if self.ratio is None:
            return "can't be said here"
        low, high = self.ratio.interval
        if low <= self.bound <= high:
            return "can't be said here"
        return "holds" if (low > self.bound) == (self.least is not None) else "does not hold"

    def message(self) -> Message:
        """The figure with its interval, as "1.87x (1.75-1.99)"."""
        if self.ratio is None:
            return Message("claim.unknown")
        low, high = self.ratio.interval
        return Message("claim.figure", {"value": self.ratio.value, "low": low, "high": high})

    def why_open(self) -> Message:
        if self.ratio is None:
            return Message("claim.figure_missing", {"least": MIN_ROUNDS})
        return Message("claim.straddles", {"figure": self.message(), "bound": self.bound})


Figures = dict[str, ClaimedFigure]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim, what was measured, and whether it holds on the machine and with the models of that measurement.
    `reason`: why the measurement can't decide, if it can't."""

    claim: Message
    measured: Message
    standing: Standing
    reason: Message | None

    def sentences(self) -> list[Message]:
        params: dict[str, object] = {} if self.reason is None else {"reason": self.reason}
        return [self.claim, self.measured, Message(SENTENCES[self.standing], params)]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim's experiment, and how its figures are computed. `knob`: what its sweep varies; None for a single
    comparison."""

    sides: int
    of_run: Callable[[Run], Figures] | None = None
    of_sweep: Callable[[Sweep], Figures] | None = None
    knob: str | None = None

    def fits(self, sides: int, plan: SweepPlan | None) -> bool:
        """Whether an experiment has that shape."""
        knobs = [knob.name for knob in plan.knobs] if plan and self.knob else []
        return sides == self.sides and knobs == ([self.knob] if self.knob else [])


def judged(name: ClaimName, figures: Figures) -> Claimed:
    """Judge the claim by these figures."""
    standings = [figure.standing for figure in figures.values()]
    standing: Standing = "holds"
    if "does not hold" in standings:
        standing = "does not hold"
    elif "can't be said here" in standings:
        standing = "can't be said here"
    reason = None
    if standing == "can't be said here":
        reason = next(figure.why_open() for figure in figures.values() if figure.standing == standing)
    params: dict[str, object] = {key: figure.message() for key, figure in figures.items()}
    return Claimed(Message(f"claim.says_{name}"), Message(f"claim.measured_{name}", params), standing, reason)


def _batching(run: Run) -> Figures:
    """16 -> 64 sequences at once "more than doubles offline throughput"."""
    return {"speed_up": ClaimedFigure(speed_up(run), least=2.0)}


def _table(run: Run) -> Figures:
    """Four rows: off/16, off/64, the larger draft, the smaller draft. "Adds 20-40%", "about 2x in all", and the
    smaller draft is "not necessarily faster", which no measurement can refute."""
    return {
        "batching": ClaimedFigure(speed_up(run, 1), least=2.0),
        "draft": ClaimedFigure(speed_up(run, 2, over=1), least=1.2),
        "total": ClaimedFigure(speed_up(run, 2), least=2.0),
        "smaller": ClaimedFigure(speed_up(run, 3, over=2)),
    }


def _useful_k(sweep: Sweep) -> Figures:
    """The article: "k = 5 is a good start, useful range 3-8, gains flatten past 8". Flat is at most 5% on top of
    what the useful range gives."""
    ratios = speed_ups(sweep)
    useful = [ratio for k, ratio in ratios.items() if 3 <= k <= 8]
    past = [ratio for k, ratio in ratios.items() if k > 8]
    flat = quotient(mean(past), mean(useful)) if useful and past else None
    return {"start": ClaimedFigure(ratios.get(5), least=1.0), "past": ClaimedFigure(flat, most=1.05)}


def _under_load(sweep: Sweep) -> Figures:
    """The article: "a single stream gains little, and its TTFT may get worse; the gain shows under load". Little
    is less than the 20% that it promises at least; the load is the highest concurrency of the sweep."""
    ratios, highest = (
        speed_ups(sweep),
        max(value for value in sweep.plan.knobs[0].values if isinstance(value, int)),
    )
    single, load, alone = ratios.get(1), ratios.get(highest), measured_at(sweep, 1)
    return {
        "single": ClaimedFigure(single, most=1.2),
        "ttft": ClaimedFigure(speed_up(alone, by="ttft") if alone else None),
        "load": ClaimedFigure(load, least=1.0),
        "growth": ClaimedFigure(quotient(load, single) if load and single else None, least=1.0),
    }


def _continuous(run: Run) -> Figures:
    """Static waves, then continuous batching: "3x throughput, 40% lower mean latency"."""
    return {
        "throughput": ClaimedFigure(speed_up(run), least=3.0),
        "latency": ClaimedFigure(latency_ratio(run, mean_answer), most=0.6),
    }


def _gpu_memory(run: Run) -> Figures:
    """The article: "0.85 -> 0.95 gave 18% more throughput"."""
    return {"speed_up": ClaimedFigure(speed_up(run), least=1.18)}


def _short_requests(sweep: Sweep) -> Figures:
    """The article: "starves the short ones (mean latency 200 ms -> 1.5 s); long-prefill limits help". The first
    point sends the short requests alone, the second among long ones: short are those that both send. The first
    side has no limit."""
    runs = [point.run for point in sweep.points]
    if len(runs) != 2 or runs[0] is None or runs[1] is None:
        return {"starved": ClaimedFigure(None, least=7.5), "helped": ClaimedFigure(None, most=1.0)}
    latency = mean_of(conversations_of(runs[0]) & conversations_of(runs[1]))
    plain = runs[0].sides[0].label
    alone, among = (Ratio.of_values([row[plain] for row in latencies(run, latency)]) for run in runs if run)
    return {
        "starved": ClaimedFigure(quotient(among, alone) if alone and among else None, least=7.5),
        "helped": ClaimedFigure(latency_ratio(runs[1], latency), most=1.0),
    }


CLAIMS: dict[ClaimName, Claim] = {
    "batching": Claim(sides=2, of_run=_batching),
    "table": Claim(sides=4, of_run=_table),
    "continuous": Claim(sides=2, of_run=_continuous),
    "gpu_memory": Claim(sides=2, of_run=_gpu_memory),
    "useful_k": Claim(sides=2, of_sweep=_useful_k, knob="k"),
    "under_load": Claim(sides=2, of_sweep=_under_load, knob="concurrency"),
    "short_requests": Claim(sides=2, of_sweep=_short_requests, knob="prompts"),
}
