"""What each layer of a model keeps of a sequence, read from its config.json.

The names and rules are those of vLLM's model files and transformers' configuration classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .fields import HEAD_DIM, HEADS, HIDDEN, KV_HEADS, LAYERS

# Far above any size of a decoder: a larger one is an error in the configuration.
LARGEST_SIZE = 2**31
# The deepest decoders have some hundred layers; each is looked at.
MOST_LAYERS = 10_000
FULL, WINDOW, STATE, NOTHING = "full", "window", "state", "nothing"
# What families call the kinds of layers.
KINDS: dict[str | int, str] = {
    **dict.fromkeys(("full_attention", "attention", "hybrid", "*", 1), FULL),
    **dict.fromkeys(("sliding_attention",), WINDOW),
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "conv", "M", 0), STATE),
    **dict.fromkeys(("mlp", "moe", "-", "E"), NOTHING),
}
# Families whose attention vLLM runs with one compressed vector a token (its `is_deepseek_mla`).
LATENT_FAMILIES = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm4_moe_lite", "glm_moe_dsa"}
LATENT_FIELDS = ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
# Families whose layers vLLM gives a window by `layer_types`; others take one for all layers, or none.
INTERLEAVED = {
    *("llama", "apertus", "cohere2", "exaone4", "gemma2", "gemma3_text", "gemma3n_text", "gpt_oss", "olmo3"),
    *("ministral", "ministral3"),
}
# Those whose classes make such a list of a pattern.
INTERLEAVED_BY_PATTERN = INTERLEAVED - {"llama", "apertus", "ministral", "ministral3"}
# Families of layers with a cache and others without, whose configuration says which.
HYBRID = {"bamba", "granitemoehybrid", "minimax_text_01", "nemotron_h"}
# Families whose `multi_query` vLLM obeys.
MULTI_QUERY = {"falcon", "gpt_bigcode"}
# Where a configuration lists the kind of each layer.
LISTS = ("layers_block_type", "layer_types", "hybrid_override_pattern", "attn_type_list")


@dataclass(frozen=True, slots=True)
class Cache:
    """`layers` that keep, for each token, `elements` for each of `kv_heads`; only of the last `window` tokens, or
    of all. Heads are split over GPUs, and repeated where there are fewer heads than GPUs."""

    layers: int
    kv_heads: int
    elements: int
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Caches:
    """`stateful`: layers that keep a state of fixed size instead. `unclear`: fields that were not understood."""

    groups: tuple[Cache, ...]
    stateful: int = 0
    unclear: tuple[str, ...] = ()


def size(value: Any, least: int = 1) -> int:
    """The value as a size. Raises ValueError, TypeError or OverflowError where it is none."""
    number = int(value)
    if (
        isinstance(value, bool)
        or (isinstance(value, float) and value != number)
        or not least <= number <= LARGEST_SIZE
    ):
        raise ValueError(f"{value} is no size")
    return number


def first(text: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of these fields that is set; None without one."""
    return next((text[name] for name in names if text.get(name) is not None), None)


def layer_count(text: Mapping[str, Any]) -> int:
    """How many layers there are: a list of their kinds counts where the number is left out."""
    listed = first(text, ("hybrid_override_pattern", "layers_block_type"))
    layers = size(first(text, LAYERS) or (len(listed) if listed else None))
    if layers > MOST_LAYERS:
        raise ValueError(f"{layers} layers")
    return layers


def read_caches(family: str, text: Mapping[str, Any]) -> Caches:
    """The caches of a model's layers. `text` is complete: what the family's class would fill in is there. Raises
    what `size` raises, KeyError, and ValueError where no layer keeps tokens."""
    layers = layer_count(text)
    if blocks := text.get("block_configs"):
        return _by_block(text, blocks, layers)
    kinds, unclear = _kinds(family, text, layers)
    if shared := size(text.get("num_kv_shared_layers") or 0, least=0):
        # The last layers use the cache of earlier ones.
        kinds = kinds[: max(layers - shared, 0)]
    heads, elements = _per_token(family, text)
    counts = Counter(kinds)
    groups = [Cache(counts[FULL], heads, elements)] if counts[FULL] else []
    if counts[WINDOW]:
        window = text.get("sliding_window")
        groups.append(Cache(counts[WINDOW], heads, elements, size(window) if window else None))
        unclear += () if window else ("sliding_window",)
    if text.get("index_head_dim"):
        # DeepSeek-V3.2's second cache, of what chooses the tokens to look at.
        unclear += ("index_head_dim",)
    latent = family in LATENT_FAMILIES
    if not latent:
        unclear += tuple(name for name in LATENT_FIELDS if text.get(name))
    elif "kv_lora_rank" not in text:
        # Their classes fill it in; null means none.
        unclear += ("kv_lora_rank",)
    if size(first(text, HEADS)) % heads:
        unclear += KV_HEADS[:1]
    if text.get("multi_query") and family not in MULTI_QUERY:
        unclear += ("multi_query",)
    if not groups:
        raise ValueError("no layer has a cache")
    return Caches(tuple(groups), counts[STATE], unclear)


def _by_block(text: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], layers: int) -> Caches:
    """Nemotron-NAS: each layer says how many heads share one of keys and values, or that it has no attention."""
    heads, head_dim = size(first(text, HEADS)), _head_dim(text)
    attention = [block["attention"] for block in blocks[:layers]]
    kept = [part for part in attention if not part.get("no_op") and not part.get("replace_with_linear")]
    counts = Counter(heads // size(part["n_heads_in_group"]) for part in kept)
    if not kept:
        raise ValueError("no layer has a cache")
    windows = any(part.get("window_length") or part.get("sparsify") for part in kept)
    unclear = ("block_configs",) if windows or len(blocks) != layers else ()
    return Caches(tuple(Cache(count, each, 2 * head_dim) for each, count in counts.items()), 0, unclear)


def _per_token(family: str, text: Mapping[str, Any]) -> tuple[int, int]:
    """Heads of keys and values, and the elements that one of them has for a token."""
    if text.get("kv_lora_rank") and family in LATENT_FAMILIES:
        return 1, size(text["kv_lora_rank"]) + size(text["qk_rope_head_dim"])
    return kv_heads(family, text), 2 * _head_dim(text)


def kv_heads(family: str, text: Mapping[str, Any]) -> int:
    """Heads of keys and values; as many as of queries where nothing else is said."""
    nested = text.get("attn_config")
    grouped = nested.get("kv_n_heads") if isinstance(nested, Mapping) else None
    one = family in MULTI_QUERY and text.get("multi_query") and not text.get("new_decoder_architecture")
    if family == "chatglm" and not text.get("multi_query_attention"):
        return size(first(text, HEADS))
    return 1 if one else size(grouped or first(text, KV_HEADS) or first(text, HEADS))


def _head_dim(text: Mapping[str, Any]) -> int:
    return size(first(text, HEAD_DIM) or size(first(text, HIDDEN)) // size(first(text, HEADS)))


def _kinds(family: str, text: Mapping[str, Any], layers: int) -> tuple[list[str], tuple[str, ...]]:
    """The kind of each layer, and the fields that say so in a way that is not understood."""
    for name in LISTS:
        if not (listed := text.get(name)):
            continue
        kinds = [KINDS.get(kind, "") if isinstance(kind, str | int) else "" for kind in listed]
        wrong = len(kinds) != layers or "" in kinds or (WINDOW in kinds and family not in INTERLEAVED)
        # What is unknown counts as full attention: the most that a layer keeps.
        return [kind or FULL for kind in [*kinds, *[""] * layers][:layers]], ((name,) if wrong else ())
    for name in ("attn_layer_indices", "full_attn_idxs"):
        if text.get(name) is not None:
            full = set(text[name])
            return [FULL if layer in full else STATE for layer in range(layers)], ()
    if period := text.get("attn_layer_period"):
        offset = size(text.get("attn_layer_offset") or 0, least=0)
        return [FULL if layer % size(period) == offset else STATE for layer in range(layers)], ()
    if interval := text.get("full_attention_interval"):
        return [STATE if (layer + 1) % size(interval) else FULL for layer in range(layers)], ()
    if family == "falcon_h1":
        # Each layer has both.
        return [FULL] * layers, ("model_type",)
    if family in HYBRID:
        return [FULL] * layers, ("layer_types",)
    return _windows(family, text, layers)


def _windows(family: str, text: Mapping[str, Any], layers: int) -> tuple[list[str], tuple[str, ...]]:
    if not text.get("sliding_window") or text.get("use_sliding_window") is False:
        return [FULL] * layers, ()
    size(text["sliding_window"])
    if family.startswith("qwen"):
        if not text.get("use_sliding_window"):
            return [FULL] * layers, ()
        # Its class says that the first `max_window_layers` see everything; vLLM's own model has no such rule.
        return [FULL] * layers, ("use_sliding_window",)
    pattern = first(text, ("sliding_window_pattern", "_sliding_window_pattern"))
    if isinstance(pattern, str):
        # Exaone 4: L and G repeat, and the last layer sees everything.
        letters = [pattern[layer % len(pattern)] for layer in range(layers)]
        return [WINDOW if letter == "L" else FULL for letter in [*letters[:-1], "G"]], ()
    if not pattern:
        return [WINDOW] * layers, ()
    if family not in INTERLEAVED_BY_PATTERN:
        return [WINDOW] * layers, ("sliding_window_pattern",)
    kinds = [WINDOW if (layer + 1) % size(pattern) else FULL for layer in range(layers)]
    return [*kinds[:-1], FULL] if family == "exaone4" else kinds, ()
