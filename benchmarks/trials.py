"""What `attacks` and `faults` share: trials that end in time, a probe of the page beside each, and their table."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import subprocess
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

TRIAL_S = 90


@dataclass(frozen=True)
class Outcome:
    """What a trial came to: whether the playground held, and in a few words what was seen."""

    held: bool
    seen: str


@dataclass(frozen=True)
class Trial:
    """One attack or fault. `run` gets a folder of its own, empty and short enough for Unix sockets."""

    name: str
    wanted: str
    run: Callable[[Path], Awaitable[Outcome]]


class Probe:
    """Asks the page for a small file again and again: how long it kept somebody else waiting.

    An async context manager; `worst_s` is the longest answer so far, that under way included.
    """

    def __init__(self, url: str, path: str = "/manifest.json") -> None:
        self._url = url + path
        self._worst_s = 0.0
        self._since = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    @property
    def worst_s(self) -> float:
        return max(self._worst_s, time.monotonic() - self._since)

    async def __aenter__(self) -> Probe:
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _ask(self) -> None:
        async with httpx.AsyncClient(timeout=60) as client:
            while True:
                self._since = time.monotonic()
                with contextlib.suppress(httpx.HTTPError):
                    await client.get(self._url)
                self._worst_s = max(self._worst_s, time.monotonic() - self._since)
                await asyncio.sleep(0.05)
                self._since = time.monotonic()


def alive(pids: Sequence[int]) -> list[int]:
    """Those that still run."""
    running = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                running.append(pid)
    return running


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]


async def terminated(process: subprocess.Popen[bytes], pids: Sequence[int]) -> tuple[float | None, list[int]]:
    """Send SIGTERM. Returns the seconds until the process had ended (None: it did not within 20 s), and which of
    these processes still ran 2 s later; those are killed."""
    since = time.monotonic()
    process.send_signal(signal.SIGTERM)
    ended = await until(lambda: process.poll() is not None, within_s=20)
    took = time.monotonic() - since
    await until(lambda: not alive(pids), within_s=2)
    left = alive(pids)
    for pid in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()
    return took if ended else None, left


async def until(condition: Callable[[], bool], within_s: float) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


def main(trials: Sequence[Trial], folder: Callable[[], contextlib.AbstractContextManager[Path]]) -> int:
    """The command line: the trials that it names, or all. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    chosen = [trial for trial in trials if not names or trial.name in names]
    return 1 if asyncio.run(table(chosen, folder)) else 0


async def table(trials: Sequence[Trial], folder: Callable[[], contextlib.AbstractContextManager[Path]]) -> int:
    """Run the trials one after the other and print a row for each. Returns how many did not hold."""
    failed = 0
    for trial in trials:
        with folder() as place:
            outcome = await _outcome(trial, place)
        failed += not outcome.held
        print(
            f"{'held' if outcome.held else 'FAILED':7} {trial.name}: {outcome.seen} (wanted: {trial.wanted})",
            flush=True,
        )
    print(f"\n{len(trials) - failed} of {len(trials)} held")
    return failed


async def _outcome(trial: Trial, place: Path) -> Outcome:
    try:
        async with asyncio.timeout(TRIAL_S):
            return await trial.run(place)
    except TimeoutError:
        return Outcome(False, f"not done after {TRIAL_S} s")
    except Exception as error:  # noqa: BLE001
        # Whatever a trial runs into is its row; where, is printed above it.
        traceback.print_exc()
        return Outcome(False, f"{type(error).__name__}: {str(error)[:200]}")
