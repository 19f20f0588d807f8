"""OpenAI-compatible servers that are not vLLM, started for real: `transformers serve` and llama.cpp's own server.

Both serve the embedded model on a loopback port, with one thread each: two cores are shared with everything else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx

Kind = Literal["llama.cpp", "transformers", "transformers, continuous batching"]
START_S = 180
STOP_S = 15
# llama.cpp's package on the index is source, half an hour of compiling; xllamacpp's wheel holds the same server.
LLAMA_SERVER = """
import sys, threading, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port = sys.argv[1], int(sys.argv[2])
parameters.n_parallel, parameters.n_ctx = 4, 4096
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(parameters)
threading.Event().wait()
"""
# Left to itself, continuous batching takes most of the machine's memory for its cache.
BATCHING = ["--continuous-batching", "--cb-num-blocks=256", "--cb-block-size=32", "--cb-max-batch-tokens=256"]


@dataclass(frozen=True)
class Foreign:
    """A server that runs. `model` is the name it answers to."""

    kind: Kind
    url: str
    model: str
    log: Path


@contextmanager
def foreign(kind: Kind, model_folder: Path, gguf: Path, log: Path) -> Iterator[Foreign]:
    """Ready when it is given; its whole group is gone afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if kind == "llama.cpp":
        command = [sys.executable, "-c", LLAMA_SERVER, str(gguf), str(port)]
    else:
        command = [str(Path(sys.executable).with_name("transformers")), "serve", str(model_folder)]
        command += ["--device=cpu", "--host=127.0.0.1", f"--port={port}"]
        command += BATCHING if kind == "transformers, continuous batching" else []
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(process, url, log)
        yield Foreign(kind, url, str(model_folder), log)
    finally:
        _end(process)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/health", timeout=5, trust_env=False).is_success:
                return
        time.sleep(0.2)
    raise AssertionError(f"not ready (exit code {process.poll()}):\n{log.read_text(errors='replace')[-3000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
