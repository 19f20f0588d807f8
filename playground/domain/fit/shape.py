"""A model's shape, read from its config.json, which determines the size of its weights and KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .caches import LARGEST_SIZE, LATENT_FAMILIES, Cache, first, kv_heads, layer_count, read_caches, size
from .context import context_of
from .families import DEFAULTS
from .fields import (
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    LAYERS,
    MTP,
    POSITIONS,
    QUANTIZATION,
    VOCABULARY,
    family_of,
    not_understood,
    text_part,
)

FLOAT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Families whose layers are what `ModelShape.parameters` counts.
COUNTED = {
    *(
        "llama",
        "mistral",
        "mixtral",
        "ministral",
        "qwen2",
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen3",
        "qwen3_moe",
        "gemma",
    ),
    *("gemma2", "gemma3_text", "phi3", "deepseek_v2", "deepseek_v3", "kimi_k2", "olmo", "olmo2", "granite"),
    *("smollm3", "seed_oss", "glm", "glm4", "cohere", "cohere2", "internlm2", "exaone4", "ernie4_5"),
}


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one compressed vector a token and layer."""

    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_rank: int | None


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: all but the first `dense_layers` layers have `routed` + `shared` of them."""

    routed: int
    shared: int
    chosen: int
    intermediate: int
    dense_layers: int


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes in numbers of elements. `caches`: what groups of layers keep of each token; `stateful`: how many
    layers keep a state of fixed size instead.

    `context`: the longest sequence; `usual_context`: the one that vLLM takes unless told, where it is shorter.
    `unclear`: fields that may change the cache in a way unknown here; what is said of memory is then an estimate.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    dtype: str
    context: int | None
    usual_context: int | None
    caches: tuple[Cache, ...]
    stateful: int = 0
    latent: Latent | None = None
    experts: Experts | None = None
    quantization: str | None = None
    quantization_bits: int | None = None
    mtp_layers: int = 0
    multimodal: bool = False
    counted: bool = False
    unclear: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape | None:
        """None where config.json lacks what a decoder's has, or a size in it is invalid.

        A multimodal model's text part is what counts.
        """
        try:
            return _shape(config)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            return None

    @property
    def understood(self) -> bool:
        """Whether every field that can change the cache is known."""
        return not self.unclear

    @property
    def plain(self) -> bool:
        """Whether the cache is exactly so many bytes for each token: no layer has a window or a state."""
        bounded = any(
            cache.window is not None and cache.window < (self.context or LARGEST_SIZE) for cache in self.caches
        )
        return self.understood and not self.stateful and not bounded

    @property
    def parameters(self) -> int:
        """How many weights a decoder of this shape has, biases left out (less than 0.1%), as in Llama, Qwen,
        Mistral, Gemma and DeepSeek: embeddings, attention, gated MLP or experts, norms."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return embeddings + self.linear_parameters + (2 * self.layers + 1) * self.hidden

    @property
    def linear_parameters(self) -> int:
        """How many weights the layers' matrices have. Quantization makes these smaller."""
        dense = 3 * self.hidden * self.intermediate
        if self.experts is None:
            return self.layers * (self._attention + dense)
        experts = self.experts
        per_expert = 3 * self.hidden * experts.intermediate
        sparse = (experts.routed + experts.shared) * per_expert + self.hidden * experts.routed
        layers = experts.dense_layers * dense + (self.layers - experts.dense_layers) * sparse
        return self.layers * self._attention + layers

    @property
    def _attention(self) -> int:
        if self.latent is None:
            return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        latent = self.latent
        query_dim = self.heads * (latent.nope_dim + latent.rope_dim)
        rank = latent.query_rank
        query = self.hidden * query_dim if rank is None else rank * (self.hidden + query_dim)
        down = self.hidden * (latent.kv_rank + latent.rope_dim)
        up = latent.kv_rank * self.heads * (latent.nope_dim + latent.value_dim)
        return query + down + up + self.heads * latent.value_dim * self.hidden

    @property
    def widest(self) -> int:
        """Elements of the widest intermediate result a token has in a layer's MLP, after the gate."""
        if self.experts is None:
            return self.intermediate
        chosen = (self.experts.chosen + self.experts.shared) * self.experts.intermediate
        return max(chosen, self.intermediate if self.experts.dense_layers else 0)


def _shape(config: Mapping[str, Any]) -> ModelShape:
    written = text_part(config)
    family = family_of(config, written)
    text = {**_defaults(family, written), **written}
    caches = read_caches(family, text)
    hidden, heads = size(first(text, HIDDEN)), size(first(text, HEADS))
    context, usual = context_of(family, text)
    quantization: Mapping[str, Any] = next(
        (part[key] for part in (config, written) for key in QUANTIZATION if part.get(key)), {}
    )
    method = quantization.get("quant_method") or quantization.get("quant_algo")
    unclear = (*caches.unclear, *not_understood(family, config, written, stateful=caches.stateful > 0))
    return ModelShape(
        layers=layer_count(text),
        hidden=hidden,
        intermediate=_widest(first(text, INTERMEDIATE) or 4 * hidden),
        heads=heads,
        kv_heads=kv_heads(family, text),
        head_dim=size(first(text, HEAD_DIM) or hidden // heads),
        vocabulary=size(first(text, VOCABULARY)),
        tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        dtype=_dtype(config, written),
        context=context,
        usual_context=usual,
        caches=caches.groups,
        stateful=caches.stateful,
        latent=_latent(text) if family in LATENT_FAMILIES else None,
        experts=_experts(text, layer_count(text)),
        quantization=str(method) if method else None,
        quantization_bits=_bits(quantization) if method else None,
        mtp_layers=next((size(text[key]) for key in MTP if text.get(key)), 0),
        multimodal=written is not config or any(key.endswith(("vision_config", "audio_config")) for key in config),
        counted=family in COUNTED,
        unclear=tuple(dict.fromkeys(unclear)),
    )


def _widest(value: Any) -> int:
    """The size, or the largest of those that each layer has."""
    return max(map(size, value)) if isinstance(value, list) else size(value)


def _defaults(family: str, written: Mapping[str, Any]) -> dict[str, int]:
    """What the family's class fills in for fields that are left out under all of their names."""
    same = {names[0]: names for names in (LAYERS, HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, VOCABULARY, POSITIONS)}
    return {
        key: value
        for key, value in DEFAULTS.get(family, {}).items()
        if not any(name in written for name in same.get(key, (key,)))
    }


def _dtype(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    names = (part.get(key) for part in (config, text) for key in ("dtype", "torch_dtype"))
    dtype = next((str(name).removeprefix("torch.") for name in names if name), "bfloat16")
    return dtype if dtype in FLOAT_BYTES else "bfloat16"


def _latent(text: Mapping[str, Any]) -> Latent | None:
    if not text.get("kv_lora_rank"):
        return None
    rank = text.get("q_lora_rank")
    return Latent(
        kv_rank=size(text["kv_lora_rank"]),
        rope_dim=size(text["qk_rope_head_dim"]),
        nope_dim=size(text["qk_nope_head_dim"]),
        value_dim=size(text["v_head_dim"]),
        query_rank=size(rank) if rank else None,
    )


def _experts(text: Mapping[str, Any], layers: int) -> Experts | None:
    names = ("n_routed_experts", "num_local_experts", "num_experts")
    routed = next((size(text[name]) for name in names if text.get(name)), 0)
    if not routed:
        return None
    return Experts(
        routed=routed,
        shared=size(text.get("n_shared_experts") or 0, least=0),
        chosen=size(text.get("num_experts_per_tok") or 1),
        intermediate=size(text.get("moe_intermediate_size") or text["intermediate_size"]),
        dense_layers=min(size(text.get("first_k_dense_replace") or 0, least=0), layers),
    )


def _bits(quantization: Mapping[str, Any]) -> int:
    """Bits of one quantized weight."""
    if bits := quantization.get("bits") or quantization.get("w_bit"):
        return size(bits)
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        if bits := (group.get("weights") or {}).get("num_bits"):
            return size(bits)
    return 4 if quantization.get("load_in_4bit") or "fp4" in str(quantization.get("quant_method")) else 8
