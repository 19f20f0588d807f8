"""The size of the KV cache, in bytes."""

from __future__ import annotations

from .shape import FLOAT_BYTES, ModelShape


def kv_bytes(shape: ModelShape, length: int, element_bytes: int, *, batched: int, tp: int = 1) -> int:
    """The KV cache of one sequence of `length` tokens, without the state of layers that keep no tokens.

    Heads are split over `tp` GPUs and repeated where there are fewer heads. A sliding window keeps its last
    window - 1 tokens and those of the step under way (vLLM's SlidingWindowSpec).
    """
    total = 0
    for cache in shape.caches:
        held = length if cache.window is None else min(length, cache.window - 1 + batched)
        total += cache.layers * held * max(1, cache.kv_heads // tp) * cache.elements
    return total * element_bytes


def kv_element_bytes(kv_cache_dtype: str | None, dtype: str) -> int:
    """`auto` is the engine's precision; types other than floats of 16 or 32 bits have 8 bits."""
    if kv_cache_dtype in (None, "auto"):
        return FLOAT_BYTES[dtype]
    return FLOAT_BYTES.get(str(kv_cache_dtype), 1)
