"""Surfaces for the search's benchmark: what each point of a grid is worth, without an engine.

Built, not measured: from the theory in `playground.domain.speculation.theory`, and for batching from a formula of
the usual shape (a step costs more with more sequences in it; small prefill chunks make others wait; who waits
too long does not count). `recorded` reads one measured on the CPU engine, by `benchmarks/search.py --real`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from playground.domain.spec.case import Case, Side
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Workload
from playground.domain.speculation.theory import expected_speed_up, geometric_rates
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import Sweep
from playground.runs.sweep import new_sweep

RECORDED = Path(__file__).with_name("search_surface.json")


@dataclass(frozen=True)
class Surface:
    """`logs` has each point's worth in the grid's order: a log that rises with it, without noise."""

    name: str
    plan: dict[str, tuple[int, ...]]
    logs: tuple[float, ...]

    def sweep(self) -> Sweep:
        """A search: of side B, which speculates, against a side A, which doesn't and stays as it is."""
        knobs = [{"name": name, "values": values, "side": "B"} for name, values in self.plan.items()]
        made = SweepPlan.model_validate({"knobs": knobs, "search": True})
        settings = (EngineSettings(target="m"), EngineSettings(target="m", speculation=Ngram(prompt_lookup_max=8)))
        sides = tuple(Side(label=label, engine=own) for label, own in zip("AB", settings, strict=True))
        return new_sweep(made, Case(sides=sides, workload=Workload(prompt="x"), measurement=Measurement()))


def built() -> list[Surface]:
    """Of one to three knobs, 12 to 96 points."""
    ks, longer = tuple(range(1, 9)), tuple(range(1, 13))
    sequences, tokens = (8, 16, 32, 64, 128, 256, 512), (512, 1024, 2048, 4096, 8192, 16384)
    fewer = {"max_num_seqs": sequences[1:5], "max_num_batched_tokens": tokens[1:5]}
    return [
        _surface("k", lambda k: _ngram(k, 2), k=longer),
        _surface("k x lookup, 2", _ngram, k=ks, prompt_lookup_min=(2, 4)),
        _surface("k x lookup, 4", _ngram, k=ks, prompt_lookup_min=(1, 2, 3, 4)),
        _surface("batching", _batching, max_num_seqs=sequences, max_num_batched_tokens=tokens),
        _surface("batching x k", _both, **fewer, k=ks[:6]),
    ]


def recorded() -> Surface:
    found = json.loads(RECORDED.read_text())
    plan = {name: tuple(values) for name, values in found["knobs"].items()}
    logs = tuple(log(point["speed_up"]) for point in found["points"])
    return Surface("recorded", plan, logs)


def _surface(name: str, worth: Callable[..., float], **plan: tuple[int, ...]) -> Surface:
    empty = Surface(name, plan, ())
    return Surface(name, plan, tuple(worth(*point.values) for point in empty.sweep().points))


def _ngram(k: int, least: int) -> float:
    """A longer match is found more seldom, and is right more often."""
    coverage, acceptance = 0.9 * 0.8**least, 1 - 0.55 * 0.75**least
    return log(expected_speed_up(geometric_rates(acceptance, k), coverage, 1.06 + 0.17 * k))


def _batching(sequences: int, tokens: int, asked: int = 128) -> float:
    """Requests that are answered in time, of 128 that come at once."""
    served = min(sequences, asked)
    step_ms = 8 + 0.11 * served + 0.0006 * tokens
    wait_s = 3 * (asked - served) / asked + 1280 / tokens
    return log(served / step_ms / (1 + exp(3 * (wait_s - 1.5))))


def _both(sequences: int, tokens: int, k: int) -> float:
    """The fuller a batch is, the more a draft costs."""
    cost = 1 + k * (0.06 + 0.001 * min(sequences, 128))
    return _batching(sequences, tokens) + log(expected_speed_up(geometric_rates(0.7, k), 1.0, cost))
