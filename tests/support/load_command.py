"""`python -m playground load` as a process."""

from __future__ import annotations

import asyncio
import os
import sys


async def command(*arguments: str, key: str | None = None) -> tuple[int, str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "playground",
        "load",
        *arguments,
        env=environment | ({"OPENAI_API_KEY": key} if key else {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
