"""NVIDIA's management library, opened once."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import psutil
import pynvml


@cache
def opened() -> ModuleType | None:
    """The library, initialised; None where there is none. It stays open: opening takes longer than a query."""
    nvml: ModuleType = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def own_processes() -> frozenset[int]:
    """The ids of what this process has started, engines' workers among them."""
    return frozenset(process.pid for process in psutil.Process().children(recursive=True))
