"""What does an idle engine cost the one beside it? Measured mode takes turns while all engines live.

Trials of the first side alternate between two states of the others: idle as in a measured run, and frozen
(SIGSTOP), when they can cost nothing. Then the others are stopped for good, and the trials are made once more.

usage: python -m benchmarks.idle_engine [PRESET] [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psutil

from benchmarks.common import folder, ratio
from playground import presets, prompts
from playground.config import Config
from playground.domain.record.metrics import trace_figures
from playground.domain.stats.rounds import order_of
from playground.domain.stats.verdicts import Verdict, compare
from playground.engine.pool import Holder
from playground.engine.server import Engine
from playground.load.driver_client import MeasuredLoad
from playground.runs.host import Host
from playground.runs.sides.engine_start import prepare

TARGET = 0.98
STATES = ("frozen", "idle")
ALONE = 3


@dataclass(frozen=True)
class IdleCost:
    """`verdict`: idle against frozen, by output tokens a second. `alone`: of trials after the others were stopped,
    their median over the median beside idle ones (not paired: the machine may have changed meanwhile)."""

    verdict: Verdict
    alone: float

    def __str__(self) -> str:
        return (
            f"beside idle engines / beside frozen ones: {ratio(self.verdict)}, at least {TARGET:g} is wanted; "
            f"alone / beside idle ones: {self.alone:.4f} (not paired)"
        )


async def idle_cost(host: Host, preset: presets.Preset, rounds: int) -> IdleCost:
    """Uses the host's engines if they run with these settings already; stops all but the first side's."""
    plan, workload = preset.measurement, preset.workload
    comparison = host.comparison(preset.sides, workload, plan)
    asked = prompts.of_measurement(plan, workload, 0, None).prompts
    async with host.pool.lease(Holder("idle engines", "benchmark", "now")):
        first, *others = await prepare(host.config, host.pool, comparison.live)
        engines = [other.engine for other in others if other.engine is not None]

        async def trial() -> float:
            load = MeasuredLoad(first.endpoint, asked, workload.sampling, plan.profile, 0, 120)
            async for _ in load.run():
                pass
            return trace_figures(load.in_order).output_tokens_per_s or 0.0

        await trial()
        values = []
        for number in range(rounds):
            found = {}
            for state in (STATES[index] for index in order_of(number, 2)):
                with frozen(engines) if state == "frozen" else idle():
                    found[state] = await trial()
            print(
                f"round {number + 1}: "
                + ", ".join(f"{name} {value:.2f} tokens/s" for name, value in found.items())
            )
            values.append(found)
        for engine in engines:
            await engine.stop()
        alone = [await trial() for _ in range(ALONE)]
    verdict = compare(values, "idle", "frozen", "throughput")
    return IdleCost(verdict, statistics.median(alone) / statistics.median(found["idle"] for found in values))


@contextmanager
def idle() -> Iterator[None]:
    yield


@contextmanager
def frozen(engines: Sequence[Engine]) -> Iterator[None]:
    """Every process of these engines stopped meanwhile."""
    sockets = {str(engine.uds) for engine in engines}
    mine = psutil.Process().children(recursive=True)
    roots = [process for process in mine if sockets & set(process.cmdline())]
    all_of_them = {each for root in roots for each in (root, *root.children(recursive=True))}
    for process in all_of_them:
        process.suspend()
    try:
        yield
    finally:
        for process in all_of_them:
            process.resume()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="?", default=presets.EMBEDDED)
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    with folder() as place:
        host = Host(replace(Config.from_environment(), db=place / "history.db", state=place / "state"))
        host.open()
        try:
            print(await idle_cost(host, presets.load(arguments.preset), arguments.rounds))
        finally:
            await host.close()


if __name__ == "__main__":
    asyncio.run(main())
