"""How long two engines take to start through the playground, against the same two commands started bare.

usage: python -m benchmarks.start [--pairs N]       (real engines; about 90 s a pair on two cores)
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
import time
from dataclasses import replace
from pathlib import Path

import httpx

from benchmarks.common import folder, spread, verdict
from playground import presets
from playground.config import Config
from playground.processes import quiet_environment
from playground.runs.comparison import Comparison
from playground.runs.host import Host

LIMIT = 1.05


async def through_playground(config: Config) -> tuple[float, Comparison]:
    """Seconds from the request for a run until both engines are ready."""
    host = Host(config)
    host.open()
    preset = presets.load(presets.EMBEDDED)
    comparison = host.comparison(preset.sides, preset.workload)
    began = time.monotonic()
    await host.start(comparison, "benchmark")
    while any(progress.ready_after_s is None for progress in comparison.live.progress):
        if comparison.finished:
            raise SystemExit(f"the run failed: {comparison.run.problem}")
        await asyncio.sleep(0.01)
    took = time.monotonic() - began
    comparison.stop()
    await host.close()
    return took, comparison


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


async def main(pairs: int) -> None:
    ratios, ours, theirs = [], [], []
    with folder() as place:
        config = replace(Config.from_environment(), db=place / "history.db", state=place / "state")
        # Once unmeasured: the page cache, the runtime's flags and the model are then the same for both.
        _, comparison = await through_playground(config)
        commands = [side.command for side in comparison.run.sides]
        for number in range(pairs):
            for which in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
                if which == "ours":
                    ours.append((await through_playground(config))[0])
                else:
                    theirs.append(await bare(commands))
            ratios.append(ours[-1] / theirs[-1])
            print(
                f"pair {number + 1}: {ours[-1]:.1f} s through the playground, {theirs[-1]:.1f} s bare", flush=True
            )
    print(f"through the playground  {spread(ours)} s")
    print(f"bare                    {spread(theirs)} s")
    print(f"ratio by pair           {spread(ratios)}")
    print(verdict("median ratio", statistics.median(ratios), LIMIT))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=3)
    asyncio.run(main(parser.parse_args().pairs))
