"""Our load driver against a server of known timing, beside `vllm bench serve` on that server in the same minute.

usage: python -m benchmarks.fidelity [--rounds N] [--tokenizer FOLDER] [--no-vllm]        (about 2 minutes a round)

The truth is the server's schedule (first token after 20 ms, a chunk every 5 ms) and the server's own stamps.
Client CPU per chunk is the slope between 16 and 128 streams: what a start costs is left out. It is what the
measuring process used from the first request until all was parsed: our driver's own account, and that of vLLM's
`benchmark()`, since its start takes ten seconds of CPU and varies by more than all the chunks cost. What our whole
command used is printed beside it. A client that can't keep up gets several chunks in one read and pays less for
each, with stamps that are worth as much less: compare the CPU only where both TPOT errors are small.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import free_port, load, served, verdict, vllm_bench
from playground.config import Config

FIRST_MS, GAP_MS, TOKENS = 20.0, 5.0, 256
STREAMS = (16, 64, 128)
# The most that a TTFT may be over the truth, at all but the fewest streams.
LATE_MS = (5.0, 8.0)
# One after the other on each stream: CPU time needs more chunks than one answer has.
ANSWERS = 4
PER_CHUNK = (1, 4)


@dataclass(frozen=True)
class Row:
    """One command's figures beside what the server saw of the same answers."""

    client: str
    streams: int
    per_chunk: int
    ttft_ms: float
    tpot_ms: float
    cpu_s: float
    command_cpu_s: float
    server: dict[str, float]

    @property
    def tpot_error(self) -> float:
        return self.tpot_ms / self.server["tpot_ms"] - 1


def ours(url: str, streams: int) -> tuple[float, float, float]:
    """Mean TTFT and TPOT in ms, and the client's CPU seconds."""
    numbers = {"concurrency": streams, "requests": streams * ANSWERS, "output-tokens": TOKENS}
    document = load({"base-url": url, "model": "paced", **numbers})
    figures = document["figures"]
    return figures["ttft_ms"]["mean"], figures["tpot_ms"]["mean"], document["client_cpu_s"]


def vllms(url: str, streams: int, tokenizer: Path) -> tuple[float, float, float]:
    result, cpu_s = vllm_bench(
        {
            "base-url": url,
            "model": "paced",
            "tokenizer": tokenizer,
            "dataset-name": "random",
            "random-input-len": 32,
            "random-output-len": TOKENS,
            "num-prompts": streams * ANSWERS,
            "max-concurrency": streams,
        }
    )
    return result["mean_ttft_ms"], result["mean_tpot_ms"], cpu_s


def measured(client: str, url: str, streams: int, per_chunk: int, tokenizer: Path) -> Row:
    stats(url)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ttft, tpot, cpu = ours(url, streams) if client == "ours" else vllms(url, streams, tokenizer)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = Row(client, streams, per_chunk, ttft, tpot, cpu, whole, stats(url))
    print(line(row), flush=True)
    return row


def stats(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/stats", timeout=10) as answer:
        return dict(json.load(answer))


HEADER = (
    "client  streams  tokens/chunk   TTFT ms  (server's)   TPOT ms  (server's)   error   CPU s   server late (max)"
)


def line(row: Row) -> str:
    seen = row.server
    return (
        f"{row.client:<7} {row.streams:>7} {row.per_chunk:>13} {row.ttft_ms:>9.2f} {seen['ttft_ms']:>12.2f}"
        f" {row.tpot_ms:>9.4f} {seen['tpot_ms']:>12.4f} {row.tpot_error:>7.2%} {row.cpu_s:>7.2f}"
        f" {seen['late_ms_mean']:>10.2f} ({seen['late_ms_max']:.1f})"
    )


def cpu_per_chunk_us(rows: list[Row], per_chunk: int, cpu_s: Callable[[Row], float]) -> float:
    """The slope of the median CPU time between the fewest and the most streams."""
    few, many = STREAMS[0], STREAMS[-1]
    own = [row for row in rows if row.per_chunk == per_chunk]
    cpu = {n: statistics.median(cpu_s(row) for row in own if row.streams == n) for n in (few, many)}
    return (cpu[many] - cpu[few]) / ((many - few) * ANSWERS * TOKENS / per_chunk) * 1e6


def main(rounds: int, tokenizer: Path, with_vllm: bool) -> None:
    clients = ("ours", "vllm") if with_vllm else ("ours",)
    rows: list[Row] = []
    print(HEADER)
    for per_chunk in PER_CHUNK:
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.paced_server", "--port", str(port)]
        command += ["--first", str(FIRST_MS), "--gap", str(GAP_MS), "--per-chunk", str(per_chunk)]
        with served(command, dict(os.environ), port):
            for number in range(rounds):
                for streams in STREAMS:
                    for client in clients if number % 2 == 0 else reversed(clients):
                        url = f"http://127.0.0.1:{port}"
                        rows.append(measured(client, url, streams, per_chunk, tokenizer))
    conclude(rows, clients)


def conclude(rows: list[Row], clients: tuple[str, ...]) -> None:
    own = [row for row in rows if row.client == "ours"]
    for streams, limit in zip(STREAMS[1:], LATE_MS, strict=True):
        late = statistics.median(row.ttft_ms for row in own if row.streams == streams) - FIRST_MS
        print(verdict(f"ours, TTFT over the truth at {streams} streams, ms", late, limit))
    print(verdict("ours, largest TPOT error", max(abs(row.tpot_error) for row in own), 0.01))
    for per_chunk in PER_CHUNK:
        driver = cpu_per_chunk_us(own, per_chunk, lambda row: row.cpu_s)
        command = cpu_per_chunk_us(own, per_chunk, lambda row: row.command_cpu_s)
        print(f"client CPU a chunk of {per_chunk}, microseconds: ours {driver:.1f} (whole command {command:.1f})")
        if "vllm" in clients:
            theirs = [row for row in rows if row.client == "vllm"]
            vllm = cpu_per_chunk_us(theirs, per_chunk, lambda row: row.cpu_s)
            print(f"  vllm {vllm:.1f}; " + verdict("ours / vllm", driver / vllm, 0.5))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--tokenizer", type=Path, default=Config.from_environment().models / "SmolLM2-135M-Instruct"
    )
    parser.add_argument("--no-vllm", action="store_true")
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.tokenizer, not arguments.no_vllm)
