"""Finds the programs of this host that serve models."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from playground.engine.nvml import opened
from playground.processes import quiet_environment, run_json

# Some print their version to the one stream, some to the other.
ASK = (
    "import json, subprocess, sys; p = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=20);"
    " print(json.dumps(p.stdout + p.stderr))"
)
VERSION = re.compile(r"\bv?(\d[\w.+-]*)")
ASK_S = 30


@dataclass(frozen=True)
class Program:
    """A program of this host: the words that start it, its version, "" where it does not tell, and its device,
    "cpu" or "cuda"."""

    words: tuple[str, ...]
    version: str
    device: str


def package(name: str) -> str | None:
    """The version of a package beside the playground's own; None without it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def script(name: str) -> str | None:
    """The path of a command beside the playground's Python, else on the PATH; None without it."""
    # Of a whole path the beginning does not matter.
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.is_file() else shutil.which(name)


@cache
def version_of(path: str) -> str:
    """What the program at this path says of its version; "" where it can't be asked. Blocking."""
    try:
        text = run_json(
            [sys.executable, "-c", ASK, path, "--version"], environment=quiet_environment(), timeout_s=ASK_S
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    match = VERSION.search(str(text))
    return match[1] if match else ""


@cache
def has_gpus() -> bool:
    """Whether this host has GPUs that NVML knows of."""
    nvml = opened()
    return nvml is not None and nvml.nvmlDeviceGetCount() > 0


def torch_device() -> str:
    """Where the PyTorch beside the playground computes."""
    return "cuda" if has_gpus() and "+cpu" not in (package("torch") or "+cpu") else "cpu"
