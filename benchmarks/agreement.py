"""`python -m playground load` and `vllm bench serve` in turns on one real engine: do they tell the same?

usage: python -m benchmarks.agreement [--rounds N]           (real engine; about a minute a round on two cores)

The engine serves on TCP with prefix caching off. Both clients send the same prompts in the same order, ask for as
many tokens, and are preceded by one request of their own. Ratios are ours to vLLM's, turned so that above 1 means
that ours reports the faster engine; the interval is the one that the playground's verdicts use.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from benchmarks.common import folder, free_port, load, vllm_bench
from playground import prompts
from playground.config import Config
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.schedule import schedule
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.workload import Objective
from playground.domain.stats.verdicts import compare
from playground.engine import devices, runtime
from playground.engine.command import SERVED_NAME, build
from playground.models import fetch, folders
from playground.processes import Guarded, quiet_environment
from playground.runs.load_test import SEED
from playground.runs.sides import cards

KNOBS = Knobs(max_model_len=1024, max_num_seqs=16, enforce_eager=True, enable_prefix_caching=False)
TOKENS = 48
# Concurrency -> requests.
LOADS = {1: 6, 8: 32}
PROMPTS = "chat"


@dataclass(frozen=True)
class Row:
    """What one client reported, and its throughput by the other kind of duration where it gives both."""

    throughput: float
    tpot_ms: float
    ttft_ms: float
    throughput_of_wall: float


# How a figure is compared, and why the two may differ in it.
FIGURES: dict[str, tuple[Objective, str]] = {
    "throughput": (
        "throughput",
        "vLLM divides by the time until its last task has ended, connections included; ours by the time until the"
        " last token",
    ),
    "throughput_of_wall": (
        "throughput",
        "both until the last byte, but vLLM's clock also runs while its tasks start and connect",
    ),
    "tpot_ms": ("tpot", "no difference in definition: one of the two stamps its chunks late"),
    "ttft_ms": ("ttft", "vLLM's includes opening its connections; ours are open before the clock starts"),
}


def ours(url: str, file: Path, concurrency: int) -> Row:
    numbers = {"concurrency": concurrency, "requests": LOADS[concurrency], "output-tokens": TOKENS}
    document = load({"base-url": url, "model": SERVED_NAME, "prompts": file, **numbers})
    figures = document["figures"]
    if figures["errors"] or figures["output_tokens"] != LOADS[concurrency] * TOKENS:
        raise SystemExit(f"not all was answered: {figures['errors']}, {figures['output_tokens']} tokens")
    return Row(
        figures["output_tokens_per_s"],
        figures["tpot_ms"]["mean"],
        figures["ttft_ms"]["mean"],
        figures["output_tokens"] / document["wall_s"],
    )


def vllms(url: str, file: Path, concurrency: int, tokenizer: Path) -> Row:
    result, _ = vllm_bench(
        {
            "base-url": url,
            "model": SERVED_NAME,
            "tokenizer": tokenizer,
            "dataset-name": "custom",
            "dataset-path": file,
            "custom-output-len": TOKENS,
            "num-prompts": LOADS[concurrency],
            "max-concurrency": concurrency,
            "num-warmups": 1,
        },
        # The engine applies the chat template.
        "--skip-chat-template",
        "--disable-shuffle",
    )
    if result["total_output_tokens"] != LOADS[concurrency] * TOKENS:
        raise SystemExit(f"not all was answered: {result['completed']} requests")
    throughput = result["output_throughput"]
    return Row(throughput, result["mean_tpot_ms"], result["mean_ttft_ms"], throughput)


def written(place: Path) -> dict[int, tuple[Path, Path]]:
    """For each concurrency the prompts as ours reads them, and in the order in which ours sends them."""
    texts = [prompt.conversation[-1].content for prompt in prompts.load(PROMPTS)]
    asked = _jsonl(place / "asked.jsonl", texts)
    return {
        concurrency: (asked, _jsonl(place / f"sent-{concurrency}.jsonl", [texts[item.prompt] for item in sent]))
        for concurrency, requests in LOADS.items()
        for sent in [schedule(ConcurrencyProfile(requests=requests).pace, SEED, len(texts))]
    }


def _jsonl(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
    return path


@contextlib.asynccontextmanager
async def engine(place: Path, target: Path) -> AsyncIterator[str]:
    """The URL of an engine of our own, on a port of the loopback device; stopped afterwards."""
    config = replace(Config.from_environment(), state=place / "state")
    host = devices.machine()
    settings = EngineSettings(target=str(target), knobs=KNOBS)
    found = runtime.probe(config)
    (placement,) = cards.place([settings], [found.device], host)
    command = build(
        settings,
        found,
        placement,
        target=target,
        draft=None,
        uds=place / "unused.sock",
        native_bf16=host.native_bf16,
        cpu_kv_gib=config.cpu_kv_gib,
    )
    port, argv = free_port(), list(command.argv)
    # vLLM's client knows no Unix sockets.
    argv = [f"--port={port}" if word.startswith("--uds=") else word for word in argv]
    process = Guarded.start(argv, {**quiet_environment(), **command.added}, place / "engine.log")
    try:
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url) as client, asyncio.timeout(config.start_timeout_s):
            while not await _healthy(client):
                if process.exit_code is not None:
                    raise SystemExit(process.log.read_text()[-4000:])
                await asyncio.sleep(0.5)
        yield url
    finally:
        await process.end()


async def _healthy(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health")).is_success
    except httpx.HTTPError:
        return False


async def main(rounds: int) -> None:
    target = await fetch.ensure(Config.from_environment(), folders.EMBEDDED, Path(sys.executable), print)
    results: dict[int, list[dict[str, Row]]] = {concurrency: [] for concurrency in LOADS}
    with folder() as place:
        files = written(place)
        async with engine(place, target) as url:
            print("round  streams  client    tokens/s   TPOT ms   TTFT ms")
            for number in range(rounds):
                for concurrency, (asked, sent) in files.items():
                    pair = {}
                    for client in ("ours", "vllm") if number % 2 == 0 else ("vllm", "ours"):
                        if client == "ours":
                            row = await asyncio.to_thread(ours, url, asked, concurrency)
                        else:
                            row = await asyncio.to_thread(vllms, url, sent, concurrency, target)
                        pair[client] = row
                        print(
                            f"{number + 1:>5}  {concurrency:>7}  {client:<6} {row.throughput:>11.2f}"
                            f" {row.tpot_ms:>9.2f} {row.ttft_ms:>9.1f}",
                            flush=True,
                        )
                    results[concurrency].append(pair)
    conclude(results)


def conclude(results: dict[int, list[dict[str, Row]]]) -> None:
    for concurrency, pairs in results.items():
        print(f"{concurrency} streams, {len(pairs)} alternations, ratio with its 95% interval:")
        for name, (metric, reason) in FIGURES.items():
            values = [{client: getattr(row, name) for client, row in pair.items()} for pair in pairs]
            found = compare(values, "ours", "vllm", metric)
            if found.interval is None:
                print(f"  {name:<19} {found.speed_up:.4f} (too few alternations for an interval)")
                continue
            low, high = found.interval
            differs = "" if low <= 1 <= high else f"  leaves out 1: {reason}"
            print(f"  {name:<19} {found.speed_up:.4f} ({low:.4f} to {high:.4f}){differs}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    asyncio.run(main(parser.parse_args().rounds))
