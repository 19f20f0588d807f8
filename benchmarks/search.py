"""Does a search find what the whole grid finds, in a third of its engine-seconds?

Engine-seconds are those for which the engines are held: their starts and all that is measured. The gap is how far
the setting that a search recommends lies below the grid's best. On a real engine the best of many noisy figures is
partly luck: there the two settings are measured against each other once more, in turns, until that is precise.

    python -m benchmarks.search          # on surfaces, with noise of many seeds, by sampler
    python -m benchmarks.search --real   # on the CPU engine: the grid, then a search; records the grid
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from math import exp, sqrt
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from benchmarks.common import folder
from benchmarks.surfaces import RECORDED, Surface, built, recorded
from playground import presets
from playground.config import Config
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.order import engines_of
from playground.domain.sweep.record import Sweep
from playground.domain.sweep.score import scores
from playground.i18n import say_message
from playground.report.conclusions import conclusions
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.search import REPEAT_ROUNDS, Search
from playground.runs.sweep import SweepRun, new_sweep

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

PRESET = Path(__file__).with_suffix(".toml")
# Of the logarithm of a point's worth after six rounds.
NOISES = (0.01, 0.03)
WITHIN = 0.02
# Of a grid's point, which has ten rounds: an engine starts in as long as six rounds take, a search's new point has
# six rounds, its repetition three times as many.
NEW_COST = (6 + 6) / (6 + 10)
REPEAT_COST = (6 + 6 * REPEAT_ROUNDS) / (6 + 10)
# Until the interval is about plus or minus 2%.
PRECISE = {"target_width": 2 * WITHIN, "max_rounds": 80, "budget_s": 600}


def searched(
    surface: Surface, noise: float, seed: int, sampler: Callable[[int], BaseSampler] | None = None
) -> tuple[float, float]:
    """One search: its share of the grid's engine-seconds, and its gap. The grid is taken to be free of noise."""
    lots, sweep = random.Random(seed), surface.sweep()
    search, running = Search(sweep, sampler), Counter[EngineSettings]()
    told: dict[int, float] = {}
    repeated: dict[int, float] = {}
    while (point := search.take(running)) is not None:
        again = point.number in told
        found = surface.logs[point.number] + lots.gauss(0, noise / sqrt(REPEAT_ROUNDS) if again else noise)
        (repeated if again else told)[point.number] = found
        search.tell(point, found)
        running = engines_of(point.case)
    best = repeated or told
    chosen = max(best, key=lambda number: best[number])
    spent = NEW_COST * len(told) + REPEAT_COST * len(repeated)
    return spent / len(surface.logs), 1 - exp(surface.logs[chosen] - max(surface.logs))


def compare_samplers(seeds: int) -> None:
    import optuna

    samplers: dict[str, Callable[[int, int], BaseSampler]] = {
        "GP": lambda seed, known: optuna.samplers.GPSampler(seed=1000 * seed + known, n_startup_trials=1),
        "TPE": lambda seed, known: optuna.samplers.TPESampler(seed=1000 * seed + known, n_startup_trials=1),
        "random": lambda seed, known: optuna.samplers.RandomSampler(seed=1000 * seed + known),
    }
    print("surface         points  noise  sampler  share mean  most   gap median  worst   within 2%")
    for surface in [*built(), recorded()]:
        for noise in NOISES:
            for name, make in samplers.items():
                found = [searched(surface, noise, seed, partial(make, seed)) for seed in range(seeds)]
                shares, gaps = [share for share, _ in found], [gap for _, gap in found]
                print(
                    f"{surface.name:<15} {len(surface.logs):>6} {noise:>6.0%}  {name:<7} {fmean(shares):>11.1%}"
                    f" {max(shares):>5.1%} {median(gaps):>11.1%} {max(gaps):>7.1%}"
                    f" {sum(gap <= WITHIN for gap in gaps):>5}/{seeds}",
                    flush=True,
                )


@asynccontextmanager
async def own_host() -> AsyncIterator[Host]:
    """From nothing: no engine runs, and the history is empty."""
    with folder() as place:
        host = Host(replace(Config.from_environment(), db=place / "history.db", state=place / "state"))
        host.open()
        try:
            yield host
        finally:
            await host.close()


async def held(host: Host, job: Comparison | SweepRun) -> float:
    """Seconds for which it held the engines."""
    began = time.monotonic()
    await host.start(job, "the benchmark")
    while not job.finished:  # noqa: ASYNC110 - it sends no event
        await asyncio.sleep(0.2)
    return time.monotonic() - began


async def swept(*, search: bool) -> tuple[Sweep, float]:
    """The sweep, and the seconds for which it held the engines."""
    preset = presets.load(str(PRESET))
    assert preset.sweep is not None
    sweep = new_sweep(preset.sweep.model_copy(update={"search": search}), preset.case, preset.name)
    async with own_host() as host:
        seconds = await held(host, await asyncio.to_thread(host.sweep_run, sweep))
    if sweep.status != "done":
        raise SystemExit(f"the sweep ended as {sweep.status}: {sweep.problem}")
    for score in (score for point in SweepAnalysis.of(sweep).points for score in scores(sweep, point)):
        print(score.point.values, f"{exp(score.log):.3f}", [f"{exp(end):.3f}" for end in score.interval or ()])
    print(f"{'search' if search else 'grid'}: {seconds:.0f} engine-seconds", flush=True)
    return sweep, seconds


async def real() -> None:
    grid, whole = await swept(search=False)
    record(grid, whole)
    search, part = await swept(search=True)
    best = {
        point.number: exp(ranked[0].log)
        for point in SweepAnalysis.of(grid).points
        if (ranked := scores(grid, point))
    }
    chosen = SweepAnalysis.of(search).recommendation.number
    if chosen is None:
        raise SystemExit("the search recommends nothing")
    measured = sum(point.settled for point in search.points)
    print(f"{measured} of {len(grid.points)} points, {part / whole:.1%} of the engine-seconds")
    print(f"gap by the grid's own figures: {1 - best[chosen] / max(best.values()):.1%}", flush=True)
    await tell_apart(grid, max(best, key=lambda number: best[number]), chosen)


async def tell_apart(grid: Sweep, best: int, chosen: int) -> None:
    """Measure the two points' B sides against each other."""
    if best == chosen:
        print("the search recommends the grid's best")
        return
    points = grid.planned
    sides = tuple(
        points[number].case.sides[1].model_copy(update={"label": label})
        for number, label in ((best, "best of the grid"), (chosen, "recommended"))
    )
    measurement = grid.case.measurement.model_copy(update=PRECISE)
    async with own_host() as host:
        comparison = host.comparison(sides, grid.case.workload, measurement)
        await held(host, comparison)
    if comparison.run.status != "done":
        raise SystemExit(f"the last comparison ended as {comparison.run.status}: {comparison.run.problem}")
    for conclusion in conclusions(comparison.run):
        print(say_message(conclusion.sentence))


def record(grid: Sweep, seconds: float) -> None:
    """The grid as a surface, its worth being B's speed-up over A."""
    starts = [side.ready_after_s for point in grid.points if point.run for side in point.run.sides]
    start_s = median(each for each in starts if each is not None)
    best = [scores(grid, point)[0] for point in SweepAnalysis.of(grid).points]
    document = {
        "source": "measured: SmolLM2-135M on vLLM's CPU engine, two cores shared with other work",
        "knobs": {knob.name: knob.values for knob in grid.plan.knobs},
        "start_s": round(start_s, 1),
        "point_s": round(seconds / len(best) - start_s, 1),
        "points": [
            {
                "values": score.point.values,
                "speed_up": round(exp(score.log), 4),
                "interval": [round(exp(end), 4) for end in score.interval or ()],
            }
            for score in best
        ],
    }
    RECORDED.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.real:
        asyncio.run(real())
    else:
        compare_samplers(arguments.seeds)
