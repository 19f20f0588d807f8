"""NVIDIA's management library, opened once."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import pynvml


@cache
def opened() -> ModuleType | None:
    """Ready to ask; None where there is none. Opening it takes longer than asking, so it stays open."""
    nvml: ModuleType = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml
