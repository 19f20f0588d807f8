"""Blocking work keeps nobody waiting but those who wait for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from support.paths import ROOT
from support.waiting import until

from playground.domain.errors import WorkFailed
from playground.workers import Workers, abandoned


async def test_results_and_errors() -> None:
    workers = Workers("test", 1, waiting=0)
    assert await workers.run(lambda a, b: a + b, 1, b=2) == 3
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 / 0)
    assert not abandoned()


async def test_leaving_frees_at_once_and_the_job_can_see_it() -> None:
    workers = Workers("test", 1, waiting=1)
    begun, seen = threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        while not abandoned():
            pass
        seen.set()

    task = asyncio.create_task(workers.run(job))
    await until(begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await workers.run(seen.is_set)


async def test_too_many_are_told() -> None:
    workers, over, ran = Workers("test", 2, waiting=3), threading.Event(), list[int]()
    jobs = [asyncio.create_task(workers.run(over.wait)) for _ in range(2)]
    left_out = [asyncio.create_task(workers.run(ran.append, number)) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(WorkFailed, match="too_many_wait"):
        await workers.run(abandoned)
    for task in left_out:
        task.cancel()
    await asyncio.wait(left_out)
    # Their places are free again.
    others = [asyncio.create_task(workers.run(ran.append, number)) for number in (7, 8, 9)]
    await asyncio.sleep(0)
    over.set()
    await asyncio.gather(*jobs, *others)
    assert sorted(ran) == [7, 8, 9]


HANGING = """
import asyncio, threading
from playground.workers import Workers

async def main():
    begun = threading.Event()
    job = asyncio.create_task(Workers("test", 1).run(lambda: (begun.set(), threading.Event().wait())))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    job.cancel()

asyncio.run(main())
"""


def test_the_process_ends_although_a_job_does_not() -> None:
    """asyncio's own threads would keep it from ending."""
    subprocess.run([sys.executable, "-c", HANGING], check=True, timeout=60, cwd=ROOT)
