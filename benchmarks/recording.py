"""Run presets on this host for real, in race and in measured mode, and keep the results as JSON.

usage: python -m benchmarks.recording DESTINATION PRESET... [--idle]

For each preset DESTINATION gets NAME.race.json and NAME.measured.json: documents as the command line prints them,
the race with all that its replay needs, the measured one without its requests. It says what the GPUs' memory was
before and after, and with --idle what an idle engine cost the first side.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.common import folder
from benchmarks.idle_engine import idle_cost
from playground import presets
from playground.config import Config
from playground.domain.record.run import Run
from playground.domain.spec.measurement import Measurement
from playground.engine.nvml import opened
from playground.i18n import say_message
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.documents.parts import json_text
from playground.report.exports.files import exported
from playground.runs.host import Host

IDLE_ROUNDS = 6


def gpu_memory_mib() -> list[int]:
    """Used memory of every GPU, by NVML; empty on a host without."""
    nvml = opened()
    if nvml is None:
        return []
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return [int(nvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20 for handle in handles]


async def finished(host: Host, preset: presets.Preset, measurement: Measurement | None) -> Run:
    comparison = host.comparison(preset.sides, preset.workload, measurement, preset.name)
    began = time.monotonic()
    await host.start(comparison, "benchmark")
    while not comparison.finished:  # noqa: ASYNC110 - a record that others only read sends no event
        await asyncio.sleep(0.2)
    ready = [progress.ready_after_s for progress in comparison.live.progress]
    print(f"{preset.name} {comparison.run.mode}: {comparison.run.status} after {time.monotonic() - began:.0f} s")
    print(f"  engines ready after {ready} s, memory {gpu_memory_mib()} MiB")
    if comparison.run.problem is not None:
        print("  " + say_message(comparison.run.problem))
        for side in comparison.run.sides:
            print("\n".join(side.log_tail))
    return comparison.run


async def record(host: Host, preset: presets.Preset, destination: Path) -> None:
    # Where this host keeps its models and sockets is nobody's business.
    places = {str(host.config.models): "MODELS", str(host.config.state): "STATE", sys.executable: "python"}
    race = exported(await finished(host, preset, None), "json")
    run = await finished(host, preset, preset.measurement)
    for conclusion in conclusions(run):
        print("  " + say_message(conclusion.sentence))
    measured = compare_document(run)
    for side in measured["sides"]:
        # Raw timings of some hundred requests: too much to keep beside the code.
        side["requests"] = []
    for mode, text in (("race", race), ("measured", json_text(measured))):
        for path, name in places.items():
            text = text.replace(path, name)
        (destination / f"{preset.name}.{mode}.json").write_text(text, encoding="utf-8")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("destination", type=Path)
    parser.add_argument("presets", nargs="+")
    parser.add_argument("--idle", action="store_true")
    arguments = parser.parse_args()
    arguments.destination.mkdir(parents=True, exist_ok=True)
    print(f"memory before: {gpu_memory_mib()} MiB")
    for name in arguments.presets:
        with folder() as place:
            host = Host(replace(Config.from_environment(), db=place / "history.db", state=place / "state"))
            host.open()
            try:
                await record(host, presets.load(name), arguments.destination)
                if arguments.idle:
                    print(await idle_cost(host, presets.load(name), IDLE_ROUNDS))
            finally:
                await host.close()
        print(f"memory after: {gpu_memory_mib()} MiB")


if __name__ == "__main__":
    asyncio.run(main())
