"""Where an engine finds what earlier starts compiled and learnt."""

from __future__ import annotations

import os

from playground.config import cache_root

from .runtime import Runtime


def variables(runtime: Runtime) -> dict[str, str]:
    """The environment variables for that. vLLM keys what it compiled by its own variables: these are the same for
    each start, and no part of the key.

    VLLM_ENABLE_STARTUP_PLAN is none of them: vLLM 0.32 finds a plan without regard to --gpu-memory-utilization, so
    that an engine that has a card alone would get the KV cache of one that shared it.
    """
    folder = cache_root()
    kept = {} if "VLLM_CACHE_ROOT" in os.environ else {"VLLM_CACHE_ROOT": str(folder / "vllm")}
    if not runtime.bytecode:
        # Its three processes would each compile thousands of modules. Empty: Python takes any text for yes.
        kept |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    return kept
