"""What engines are told, and what flags may change."""

from __future__ import annotations

from pathlib import Path

import psutil

from benchmarks.trials import Outcome, Trial, until

from .visits import KEY, pressed, runs, visited


def is_engine(process: psutil.Process) -> bool:
    words = process.cmdline()
    return "--uds" in " ".join(words) and "--" not in words


async def secrets_of_the_host(place: Path) -> Outcome:
    async with visited(place, OPENAI_API_KEY=KEY, AWS_SECRET_ACCESS_KEY=KEY) as (visitor, _, pid):
        await visitor.press("race")
        await until(lambda: any(status != "running" for _, status in runs(place)), within_s=30)
        engines = [child for child in psutil.Process(pid).children(recursive=True) if is_engine(child)]
        leaks = [engine.pid for engine in engines if KEY in engine.environ().values()]
    return Outcome(bool(engines) and not leaks, f"{len(engines)} engines, {len(leaks)} with the host's keys")


FLAGS = (
    "--model other",
    "--model=other",
    "--trust-remote-code",
    "--trust_remote_code",
    "--trust-rem",
    "--speculative-config {}",
    "--speculative-config.method ngram",
    "--config file.yaml",
    "--middleware os.system",
    "--host 0.0.0.0",
    "--port 1",
    "--uds /tmp/x",
    "--api-key x",
    "--served-model-name x",
    "--ud /tmp/x",
)


async def owned_flags(place: Path) -> Outcome:
    passed = []
    async with visited(place, PLAYGROUND_EXTRA_FLAGS="1") as (visitor, _, _):
        for words in FLAGS:
            visitor.fill(side0_extra_flags=words)
            if await pressed(visitor, "race") == "accepted":
                passed.append(words)
                await until(lambda: all(status != "running" for _, status in runs(place)), within_s=30)
    return Outcome(not passed, f"passed: {', '.join(passed) or 'none'} of {len(FLAGS)}")


ENGINES = (
    Trial("secrets", "none", secrets_of_the_host),
    Trial("owned-flags", "none pass", owned_flags),
)
