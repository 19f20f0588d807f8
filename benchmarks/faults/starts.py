"""Starts on addresses and folders that can't be used."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from benchmarks.common import ROOT, free_port, stand_in
from benchmarks.trials import Outcome, Trial

from .states import START_S


def started_with(**more: str) -> Callable[[Path], Awaitable[Outcome]]:
    """The app either serves or says in a sentence why not. `{place}` in a value stands for the folder."""

    async def run(place: Path) -> Outcome:
        (place / "file").write_text("a file")
        values = {name: value.format(place=place) for name, value in more.items()}
        port = free_port()
        environment = {**os.environ, **stand_in(place, rate=200), "PLAYGROUND_DB": str(place / "history.db")}
        environment |= {"PLAYGROUND_STATE": str(place / "state"), "PLAYGROUND_PORT": str(port), **values}
        line = [sys.executable, "app.py"]
        process = subprocess.Popen(  # noqa: ASYNC220
            line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        host = f"[{values['PLAYGROUND_HOST']}]" if ":" in values.get("PLAYGROUND_HOST", "") else "127.0.0.1"
        serves = False
        deadline = time.monotonic() + START_S
        async with httpx.AsyncClient() as client:
            while process.poll() is None and not serves and time.monotonic() < deadline:
                with contextlib.suppress(httpx.HTTPError):
                    serves = (await client.get(f"http://{host}:{port}/")).is_success
                await asyncio.sleep(0.2)
        process.terminate()
        output, _ = await asyncio.to_thread(process.communicate, timeout=30)
        text = output.decode(errors="replace").strip()
        last = text.splitlines()[-1][:150] if text else ""
        seen = "serves" if serves else f"exit code {process.returncode}: {last}"
        return Outcome("Traceback" not in text and (serves or bool(text)), seen)

    return run


STARTS = (
    Trial("ipv6", "serves, or a sentence", started_with(PLAYGROUND_HOST="::1")),
    Trial("no-such-address", "a sentence", started_with(PLAYGROUND_HOST="203.0.113.7")),
    Trial("state-a-file", "a sentence", started_with(PLAYGROUND_STATE="{place}/file")),
    Trial("state-unwritable", "a sentence", started_with(PLAYGROUND_STATE="/proc/playground")),
)
