"""How many tokens a model's context has, as vLLM derives it (`_get_and_verify_max_len`, 0.32)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .caches import size
from .fields import POSITIONS

# Scalings whose `max_position_embeddings` is that of the scaled model; the factor of any other extends it.
SCALED = {"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "mrope", "default"}


def context_of(family: str, text: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The longest sequence, in tokens, and the one that vLLM takes unless told; None where no field says so.

    Raises what `size` raises.
    """
    named = [size(text[name]) for name in POSITIONS if text.get(name)]
    longest = size(text["model_max_length"]) if text.get("model_max_length") else min(named, default=None)
    if longest is None:
        return None, None
    scalings = list(_scalings(text))
    kinds = [scaling.get("rope_type") or scaling.get("type") for scaling in scalings]
    factor = 1.0
    # Gemma 3's positions are scaled, whatever its scaling is called.
    if "gemma3" not in family:
        for scaling, kind in zip(scalings, kinds, strict=True):
            factor = float(scaling.get("factor") or 1) if kind not in SCALED and kind else factor
    longest = size(longest * factor)
    # The long factors make short sequences worse.
    shorter = text.get("original_max_position_embeddings") if "longrope" in kinds or "su" in kinds else None
    return longest, min(size(shorter), longest) if shorter else longest


def _scalings(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The scaling of rotary embeddings, or those of each kind of layer."""
    for name in ("rope_scaling", "rope_parameters"):
        if scaling := text.get(name):
            parts = [part for part in scaling.values() if isinstance(part, Mapping)]
            yield from parts or [scaling]
