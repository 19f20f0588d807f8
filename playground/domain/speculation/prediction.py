"""Speed-ups of k that were not measured, from those that were, and how far such predictions are off.

Speculation's formulas are in `theory`. For another k three things change:

- acceptance: a smaller k takes the first positions of the nearest larger one that was measured; beyond the
  largest, the rates go on falling by the mean factor between its neighbouring positions (a geometric tail);
- coverage: the share of tokens that come from steps that draft stays the same, not the share of such steps. Where
  text repeats itself, a longer draft needs fewer steps for it. (n-gram drafts replayed on answers of SmolLM2-135M
  to each built-in prompt set: tokens a step of k = 1 to 12 foretold from k = 5 within 5%; with a fixed coverage up
  to 32% off.)
- cost of a step: linear in k, fitted to two or more measured k. From one k only a band can be given, between a
  cost that is the same for every k and one in proportion to k + 1, the tokens that the target then computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Literal

import numpy as np

from playground.domain.message import Message

from .theory import (
    Floats,
    SpeculationPoint,
    by_concurrency,
    cost_from,
    expected_speed_up,
    geometric_rates,
    speed_up_draws,
    step_cost,
    tokens_per_step,
)


@dataclass(frozen=True, slots=True)
class CostModel:
    """A step that drafts k tokens costs `base` + `per_token` x k steps that draft none, at this concurrency.

    It never costs less than `floor`. `residual` is the fit's standard deviation; None for two points, which a
    line always meets.
    """

    concurrency: int
    base: float
    per_token: float
    floor: float
    residual: float | None

    def at(self, k: int) -> float:
        return max(self.base + self.per_token * k, self.floor)

    def statement(self) -> Message:
        params: dict[str, object] = {"concurrency": self.concurrency, "base": self.base, "each": self.per_token}
        return Message("theory.cost", params)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted speed-up of one k at one concurrency, against no speculation.

    A fit has a speed-up and, where all measured points have one, a 95% interval: what their noise makes of it, not
    whether the model holds (a `PredictionError` shows that). A band has two ends, and no likeliest value between.
    """

    k: int
    concurrency: int
    kind: Literal["fit", "band"]
    speed_up: float | None
    interval: tuple[float, float] | None

    def statement(self) -> Message:
        params: dict[str, object] = {"k": self.k, "concurrency": self.concurrency, "speed_up": self.speed_up}
        if self.interval is None:
            return Message("theory.predicted", params)
        params |= {"low": self.interval[0], "high": self.interval[1]}
        return Message(f"theory.predicted_{self.kind}", params)


@dataclass(frozen=True, slots=True)
class PredictionError:
    """A prediction beside what was then measured."""

    prediction: Prediction
    measured: float

    @property
    def relative(self) -> float:
        """Predicted / measured - 1. Of a band: from its nearer end, 0 within it."""
        predicted = self.prediction.speed_up
        if predicted is None:
            low, high = self.prediction.interval or (self.measured, self.measured)
            predicted = min(max(self.measured, low), high)
        return predicted / self.measured - 1

    def statement(self) -> Message:
        params: dict[str, object] = {"measured": self.measured, "percent": 100 * self.relative}
        return Message("theory.error", params | {"prediction": self.prediction.statement()})


def fit_costs(points: Iterable[SpeculationPoint]) -> list[CostModel]:
    """A cost model for each concurrency with two or more measured k."""
    models = []
    for concurrency, group in by_concurrency(points).items():
        ks = np.array([float(point.k) for point in group])
        if len(set(ks)) < 2:
            continue
        costs = np.array([step_cost(point) for point in group])
        base, slope = (float(value) for value in _line(ks, costs))
        off = costs - base - slope * ks
        residual = sqrt(float(off @ off) / (len(ks) - 2)) if len(ks) > 2 else None
        models.append(CostModel(concurrency, base, slope, float(_floor(costs)), residual))
    return models


def predict(points: Iterable[SpeculationPoint], ks: Sequence[int]) -> list[Prediction]:
    """Predictions of all `ks` for each concurrency with a measured k. A measured k is predicted like any other."""
    predictions = []
    for group in by_concurrency(points).values():
        speeds = np.array([[point.speed_up] for point in group])
        sampled = all(point.interval is not None for point in group)
        if sampled:
            # The first column is the estimate, the others are draws from its distribution.
            speeds = np.hstack([speeds, speed_up_draws(group)])
        costs = np.array([cost_from(point, row) for point, row in zip(group, speeds, strict=True)])
        predictions += [_predicted(group, costs, k, sampled) for k in ks]
    return predictions


def accuracy(errors: Sequence[PredictionError]) -> Message | None:
    """How far predictions are off, as a sentence; None for none."""
    if not errors:
        return None
    worst = max(errors, key=lambda error: abs(error.relative))
    params: dict[str, object] = {
        "count": len(errors),
        "mean": 100 * fmean(abs(error.relative) for error in errors),
        "most": 100 * abs(worst.relative),
        "k": worst.prediction.k,
    }
    return Message("theory.accuracy", params)


def _predicted(group: Sequence[SpeculationPoint], costs: Floats, k: int, sampled: bool) -> Prediction:
    """`costs` has a row a point; the first column is the estimate, the others, where `sampled`, are draws."""
    acceptance, coverage = _drafting(group, k)
    ks = np.array([float(point.k) for point in group])
    concurrency = group[0].concurrency
    # From one k, the line's two extremes: all cost fixed, and all of it proportional to k + 1.
    mean_cost = costs.mean(axis=0)
    extremes = [(mean_cost, np.zeros_like(mean_cost)), (mean_cost / (ks[0] + 1), mean_cost / (ks[0] + 1))]
    lines = [_line(ks, costs)] if len(set(ks)) > 1 else extremes
    speeds = [
        expected_speed_up(acceptance, coverage, np.maximum(base + slope * k, _floor(costs)))
        for base, slope in lines
    ]
    ends = [np.quantile(row[1:], (0.025, 0.975)) if sampled else row[[0, 0]] for row in speeds]
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    if len(lines) > 1:
        return Prediction(k, concurrency, "band", None, (low, high))
    return Prediction(k, concurrency, "fit", float(speeds[0][0]), (low, high) if sampled else None)


def _line(ks: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Base and slope by least squares, the slope not below 0: a longer draft makes no step cheaper, noise may."""
    centred = ks - ks.mean()
    slope = np.maximum(centred @ costs / (centred @ centred), 0.0)
    return costs.mean(axis=0) - slope * ks.mean(), slope


def _floor(costs: Floats) -> Floats:
    """A step that drafts costs no less than one that does not, unless one was measured that did."""
    return np.asarray(np.minimum(costs.min(axis=0), 1.0))


def _drafting(group: Sequence[SpeculationPoint], k: int) -> tuple[tuple[float, ...], float]:
    """Acceptance by position and coverage to be expected for k. `group` ascends in k."""
    source = next((point for point in group if point.k >= k), group[-1])
    known = source.acceptance[:k]
    first, last = known[0], known[-1]
    factor = (last / first) ** (1 / (len(known) - 1)) if len(known) > 1 and first else first
    tail = (last * rate for rate in geometric_rates(factor, k - len(known)))
    acceptance = (*known, *tail)
    share = source.coverage * tokens_per_step(source.acceptance) / source.tokens_per_step
    steps = share / tokens_per_step(acceptance)
    return acceptance, steps / (steps + 1 - share)
