"""How long engines take to start.

usage: python -m benchmarks.start [--pairs N]       (real engines; about 90 s a pair on two cores)
       python -m benchmarks.start PRESET            (on an H200 about 8 minutes)
       python -m benchmarks.start PRESET --turns    (on an H200 about 7 minutes)

Without a preset: two through the playground, against the same two commands started bare. With one: its sides
at once, with nothing kept of earlier starts, and then with what that left; then the slowest alone, likewise.
--turns: at once, and one after the other, and whether that changes the speed of any. For
`qwen2.5-1.5b-shaped.toml` dummy_model.py makes the models.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shlex
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import httpx

from benchmarks.common import folder, spread, verdict
from playground import presets
from playground.config import Config
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import MIN_ROUNDS, Measurement
from playground.domain.stats.ratios import Ratio, quotient
from playground.domain.stats.rounds import rounds_of
from playground.engine.runtime import probe
from playground.processes import quiet_environment
from playground.report.side_summary import start_text
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.sides import kv_room

LIMIT = 1.05
SECOND_LIMIT, TOGETHER_LIMIT = 0.5, 1.3
ALONE = Measurement(
    profile=ConcurrencyProfile(concurrency=1, requests=2), max_rounds=MIN_ROUNDS, budget_s=120, check_outputs=False
)


async def through_playground(
    config: Config, preset: presets.Preset, sides: tuple[Side, ...], *, measure: bool = False
) -> tuple[float, Comparison]:
    """Seconds from the request for a run until its engines are ready. `measure`: let it measure each alone."""
    host = Host(config)
    host.open()
    comparison = host.comparison(sides, preset.workload, ALONE if measure else None)
    began = time.monotonic()
    await host.start(comparison, "benchmark")
    while any(progress.ready_after_s is None for progress in comparison.live.progress):
        if comparison.finished:
            raise SystemExit(f"the run failed: {comparison.run.problem}")
        await asyncio.sleep(0.01)
    took = time.monotonic() - began
    while measure and not comparison.finished:  # noqa: ASYNC110 - a record that others only read sends no event
        await asyncio.sleep(0.2)
    comparison.stop()
    await host.close()
    return took, comparison


def print_stages(name: str, took: float, comparison: Comparison) -> None:
    print(f"{name}: {took:.1f} s", flush=True)
    for side in comparison.run.sides:
        print(f"  {side.label}: {start_text(side)}", flush=True)


def forget(place: Path) -> None:
    """From now on engines find nothing of earlier starts: not what vLLM compiled, nor FlashInfer and Triton."""
    for name in ("VLLM_CACHE_ROOT", "FLASHINFER_WORKSPACE_BASE", "TRITON_CACHE_DIR"):
        os.environ[name] = str(Path(tempfile.mkdtemp(dir=place)) / "cache")


async def of_preset(name: str, config: Config, place: Path) -> None:
    """Compare the starts of a preset's sides at once, once more, and of the slowest alone."""
    preset = presets.load(name)
    # Its flags are asked once a version, which imports vLLM.
    await asyncio.to_thread(probe, config)
    forget(place)
    first_s, comparison = await through_playground(config, preset, preset.sides)
    print_stages("at once, the first time", first_s, comparison)
    second_s, comparison = await through_playground(config, preset, preset.sides)
    print_stages("at once, the second time", second_s, comparison)
    ready = [side.ready_after_s or 0.0 for side in comparison.run.sides]
    slowest = preset.sides[ready.index(max(ready))]
    alone = {}
    for kept in ("the second time", "the first time"):
        if kept == "the first time":
            forget(place)
        alone[kept], comparison = await through_playground(config, preset, (slowest,))
        print_stages(f"the slowest alone, {kept}", alone[kept], comparison)
    print(verdict("second comparison / first", second_s / first_s, SECOND_LIMIT))
    print(verdict("at once / alone, the first time", first_s / alone["the first time"], TOGETHER_LIMIT))
    print(verdict("at once / alone, the second time", second_s / alone["the second time"], TOGETHER_LIMIT))


async def in_turn(name: str, config: Config) -> None:
    """Compare a preset's sides started at once with the same started one after the other, as vLLM sizes them."""
    preset = presets.load(name)
    took, rates = {}, dict[str, list[list[float | None]]]()
    for how in ("at once", "in turn"):
        at_once = kv_room.equal
        if how == "in turn":
            kv_room.equal = lambda engines, checks: [None] * len(engines)
        took[how], comparison = await through_playground(config, preset, preset.sides, measure=True)
        kv_room.equal = at_once
        print_stages(how, took[how], comparison)
        rounds = rounds_of(comparison.run, "tpot")
        rates[how] = [[each.values[side.label] for each in rounds] for side in comparison.run.sides]
    print(f"at once / in turn: {took['at once'] / took['in turn']:.2f} of the time")
    for side, one, other in zip(preset.sides, rates["at once"], rates["in turn"], strict=True):
        values = [Ratio.of_values(values) for values in (one, other)]
        if values[0] is None or values[1] is None:
            print(f"  {side.label}: too few rounds")
            continue
        ratio = quotient(values[0], values[1])
        low, high = ratio.interval
        print(f"  {side.label}: time per token at once / in turn {ratio.value:.3f} ({low:.3f}-{high:.3f})")


async def bare(commands: list[str]) -> float:
    """Seconds until both answer /health, each command started as one would type it."""
    began = time.monotonic()
    processes = [_started(command) for command in commands]
    try:
        words = [word for command in commands for word in shlex.split(command)]
        sockets = [Path(word.removeprefix("--uds=")) for word in words if word.startswith("--uds=")]
        await asyncio.gather(*(_healthy(path) for path in sockets))
        return time.monotonic() - began
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            process.wait(timeout=60)


def _started(command: str) -> subprocess.Popen[bytes]:
    """`NAME=VALUE ... program arguments`, in a session of its own."""
    words = shlex.split(command)
    program = next(index for index, word in enumerate(words) if "=" not in word)
    variables = dict(word.split("=", 1) for word in words[:program])
    return subprocess.Popen(
        words[program:],
        env={**quiet_environment(), **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


async def _healthy(uds: Path) -> None:
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(uds)), base_url="http://e") as client:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get("/health")).is_success:
                    return
            await asyncio.sleep(0.1)


async def main(pairs: int, preset_name: str | None = None, *, turns: bool = False) -> None:
    with folder() as place:
        config = replace(Config.from_environment(), db=place / "history.db", state=place / "state")
        if preset_name is None:
            await beside_bare(pairs, config)
        elif turns:
            await in_turn(preset_name, config)
        else:
            await of_preset(preset_name, config, place)


async def beside_bare(pairs: int, config: Config) -> None:
    ratios, ours, theirs = [], [], []
    # Once unmeasured: the page cache, the runtime's flags and the model are then the same for both.
    preset = presets.load(presets.EMBEDDED)
    _, comparison = await through_playground(config, preset, preset.sides)
    commands = [side.command for side in comparison.run.sides]
    for number in range(pairs):
        for which in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
            if which == "ours":
                ours.append((await through_playground(config, preset, preset.sides))[0])
            else:
                theirs.append(await bare(commands))
        ratios.append(ours[-1] / theirs[-1])
        print(f"pair {number + 1}: {ours[-1]:.1f} s through the playground, {theirs[-1]:.1f} s bare", flush=True)
    print(f"through the playground  {spread(ours)} s")
    print(f"bare                    {spread(theirs)} s")
    print(f"ratio by pair           {spread(ratios)}")
    print(verdict("median ratio", statistics.median(ratios), LIMIT))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("preset", nargs="?")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--turns", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.pairs, arguments.preset, turns=arguments.turns))
