"""The size of the KV cache, in bytes."""

from __future__ import annotations

from .shape import FLOAT_BYTES, ModelShape


def kv_bytes(shape: ModelShape, length: int, element_bytes: int, *, batched: int, tp: int = 1) -> int:
    """The KV cache of one sequence of `length` tokens.

    Full attention: 2 x KV heads x head size x tokens, in each layer; heads are split over `tp` GPUs and repeated
    where there are fewer heads. A sliding window keeps its last window - 1 tokens and those of the step under way
    (vLLM's SlidingWindowSpec). Latent attention keeps one vector, rank + rotary part, whole on each GPU.
    """
    if shape.latent is not None:
        return shape.layers * length * (shape.latent.kv_rank + shape.latent.rope_dim) * element_bytes
    layer = 2 * max(1, shape.kv_heads // tp) * shape.head_dim * element_bytes
    held = length if shape.window is None else min(length, shape.window - 1 + batched)
    return layer * ((shape.layers - shape.sliding_layers) * length + shape.sliding_layers * held)


def kv_element_bytes(kv_cache_dtype: str | None, dtype: str) -> int:
    """`auto` is the engine's precision; types other than floats of 16 or 32 bits have 8 bits."""
    if kv_cache_dtype in (None, "auto"):
        return FLOAT_BYTES[dtype]
    return FLOAT_BYTES.get(str(kv_cache_dtype), 1)
