"""How long does it take to explain a log of 20 MB, and how much memory?

A log of a server that answered for days and then died, one of tracebacks alone, and what no log is like: one
endless line, and lines of one character.

usage: python -m benchmarks.explain [--mb N]
"""

from __future__ import annotations

import argparse
import io
import time
import tracemalloc

from playground.engine.failures.explanation import explain

REQUEST = '(APIServer pid=1) INFO:     127.0.0.1:50000 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
FIGURES = (
    "(APIServer pid=1) INFO 03-02 08:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 100.0 tokens/s, "
    "Avg generation throughput: 300.3 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%\n"
)
PREFIX = "(EngineCore pid=9) ERROR 03-02 08:00:00 [core.py:708] "
FAILURE = "".join(
    f"{PREFIX}{line}\n"
    for line in (
        "EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        '  File "/app/vllm/v1/engine/core.py", line 700, in run_busy_loop',
        "    self._process_engine_step()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of "
        "39.49 GiB of which 900.00 MiB is free.",
    )
)
LOGS = {
    "a server for days, then a failure": (REQUEST * 3 + FIGURES, FAILURE),
    "tracebacks": (FAILURE, ""),
    "one line": ("ValueError: x ", ""),
    "lines of one character": ("x\n", FAILURE),
}


def main(megabytes: float) -> None:
    print(f"{'a log of ' + format(megabytes, 'g') + ' MB':<36}{'s':>8}{'MiB':>8}  cause")
    for name, (piece, end) in LOGS.items():
        log = (piece * (int(megabytes * 1e6) // len(piece)) + end).encode()
        seconds, cause = timed(log)
        print(f"{name:<36}{seconds:>8.2f}{peak(log) / 2**20:>8.0f}  {cause}")


def timed(log: bytes) -> tuple[float, str | None]:
    """Seconds of processor time, and the cause."""
    began = time.process_time()
    cause = explain(io.BytesIO(log), "log", len(log)).cause
    return time.process_time() - began, cause


def peak(log: bytes) -> int:
    """The most bytes in use beside the log itself."""
    tracemalloc.start()
    explain(io.BytesIO(log), "log", len(log))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=20)
    main(parser.parse_args().mb)
