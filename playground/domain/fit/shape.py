"""A model's shape, read from its config.json, which determines the size of its weights and KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FLOAT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Far above any size of a decoder: a larger one is an error in the configuration.
LARGEST_SIZE = 2**31
# Those of config.json's `layer_types` whose memory is known here.
KNOWN_LAYERS = {"full_attention", "sliding_attention"}
# Where a configuration says how many multi-token-prediction layers it has.
MTP_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")


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
    """Sizes in numbers of elements. `window`: tokens that `sliding_layers` look back, all others see everything.

    `understood` is false where some layers are of a kind whose memory is unknown here.
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
    window: int | None = None
    sliding_layers: int = 0
    latent: Latent | None = None
    experts: Experts | None = None
    quantization: str | None = None
    quantization_bits: int | None = None
    mtp_layers: int = 0
    multimodal: bool = False
    understood: bool = True

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape | None:
        """None where config.json lacks what a decoder's has, or a size in it is invalid.

        A multimodal model's text part is what counts.
        """
        text = config.get("text_config") if isinstance(config.get("text_config"), Mapping) else config
        assert isinstance(text, Mapping)
        try:
            return _shape(config, text)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            return None

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


def _shape(config: Mapping[str, Any], text: Mapping[str, Any]) -> ModelShape:
    layers, hidden, heads = (
        _size(text["num_hidden_layers"]),
        _size(text["hidden_size"]),
        _size(text["num_attention_heads"]),
    )
    kinds = text.get("layer_types") or ()
    window, sliding = _sliding(text, layers)
    quantization = config.get("quantization_config") or text.get("quantization_config") or {}
    method = quantization.get("quant_method")
    return ModelShape(
        layers=layers,
        hidden=hidden,
        intermediate=_size(text.get("intermediate_size") or 4 * hidden),
        heads=heads,
        kv_heads=_size(text.get("num_key_value_heads") or heads),
        head_dim=_size(text.get("head_dim") or hidden // heads),
        vocabulary=_size(text["vocab_size"]),
        tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        dtype=_dtype(config, text),
        context=_context(text),
        window=window,
        sliding_layers=sliding,
        latent=_latent(text),
        experts=_experts(text, layers),
        quantization=str(method) if method else None,
        quantization_bits=_bits(quantization) if method else None,
        mtp_layers=next((_size(text[key]) for key in MTP_KEYS if text.get(key)), 0),
        multimodal="vision_config" in config or "audio_config" in config,
        understood=set(kinds) <= KNOWN_LAYERS and not any(text[key] and _has_own_state(key) for key in text),
    )


def _size(value: Any, least: int = 1) -> int:
    """The value as a size. Raises ValueError, TypeError or OverflowError where it is none."""
    size = int(value)
    if not least <= size <= LARGEST_SIZE:
        raise ValueError(f"{size} is no size")
    return size


def _has_own_state(key: str) -> bool:
    """Whether models with this key keep more, or less, than keys and values of each layer."""
    return "mamba" in key or "ssm" in key or key == "num_kv_shared_layers"


def _dtype(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    names = (part.get(key) for part in (config, text) for key in ("dtype", "torch_dtype"))
    dtype = next((str(name).removeprefix("torch.") for name in names if name), "bfloat16")
    return dtype if dtype in FLOAT_BYTES else "bfloat16"


def _context(text: Mapping[str, Any]) -> int | None:
    """The context as vLLM derives it: the model's positions, times its rope scaling where that extends them."""
    longest = text.get("max_position_embeddings") or text.get("n_positions") or text.get("max_sequence_length")
    if not longest:
        return None
    scaling = text.get("rope_scaling") or text.get("rope_parameters") or {}
    kind, factor = scaling.get("rope_type") or scaling.get("type"), scaling.get("factor")
    if not factor or kind not in ("linear", "dynamic", "yarn"):
        return _size(longest)
    original = scaling.get("original_max_position_embeddings") if kind == "yarn" else None
    return _size(_size(original or longest) * float(factor))


def _sliding(text: Mapping[str, Any], layers: int) -> tuple[int | None, int]:
    """The window and how many layers have it; without a list of kinds a pattern of N means each Nth sees all."""
    window = text.get("sliding_window")
    if not window or text.get("use_sliding_window") is False:
        return None, 0
    if kinds := text.get("layer_types"):
        return _size(window), sum(kind == "sliding_attention" for kind in kinds[:layers])
    pattern = text.get("sliding_window_pattern") or (2 if text.get("model_type") == "gemma2" else None)
    return _size(window), layers - layers // _size(pattern) if pattern else layers


def _latent(text: Mapping[str, Any]) -> Latent | None:
    if not text.get("kv_lora_rank"):
        return None
    rank = text.get("q_lora_rank")
    return Latent(
        kv_rank=_size(text["kv_lora_rank"]),
        rope_dim=_size(text["qk_rope_head_dim"]),
        nope_dim=_size(text["qk_nope_head_dim"]),
        value_dim=_size(text["v_head_dim"]),
        query_rank=_size(rank) if rank else None,
    )


def _experts(text: Mapping[str, Any], layers: int) -> Experts | None:
    names = ("n_routed_experts", "num_local_experts", "num_experts")
    routed = next((_size(text[name]) for name in names if text.get(name)), 0)
    if not routed:
        return None
    return Experts(
        routed=routed,
        shared=_size(text.get("n_shared_experts") or 0, least=0),
        chosen=_size(text.get("num_experts_per_tok") or 1),
        intermediate=_size(text.get("moe_intermediate_size") or text["intermediate_size"]),
        dense_layers=min(_size(text.get("first_k_dense_replace") or 0, least=0), layers),
    )


def _bits(quantization: Mapping[str, Any]) -> int:
    """Bits of one quantized weight."""
    if bits := quantization.get("bits") or quantization.get("w_bit"):
        return _size(bits)
    return 4 if quantization.get("load_in_4bit") or "fp4" in str(quantization.get("quant_method")) else 8
