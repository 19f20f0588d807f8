"""Which fields of a config.json are read, and which of the others could change the KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .families import DEFAULTS

# The same size by the names that different families use.
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model")
INTERMEDIATE = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = (
    *("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "num_query_groups"),
    *("multi_query_group_num", "num_attention_groups"),
)
HEAD_DIM = ("head_dim", "hidden_size_per_head", "kv_channels", "attention_head_dim")
VOCABULARY = ("vocab_size", "padded_vocab_size")
POSITIONS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_target_positions"),
    *("max_sequence_length", "max_seq_length", "seq_len"),
)
# Where a configuration says how many multi-token-prediction layers it has.
MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
# Where a multimodal configuration keeps that of its text model.
TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")

QUANTIZATION = ("quantization_config", "compression_config")

READ = {
    *LAYERS,
    *HIDDEN,
    *INTERMEDIATE,
    *HEADS,
    *KV_HEADS,
    *HEAD_DIM,
    *VOCABULARY,
    *POSITIONS,
    *MTP,
    *("attn_config", "multi_query", "multi_query_attention", "new_decoder_architecture", "num_kv_shared_layers"),
    *("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "index_head_dim"),
    *("layer_types", "layers_block_type", "hybrid_override_pattern", "attn_type_list", "block_configs"),
    *("attn_layer_indices", "full_attn_idxs", "attn_layer_period", "attn_layer_offset", "full_attention_interval"),
    *("sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern"),
    *("_sliding_window_pattern", "rope_scaling", "rope_parameters", "quantization_config", "compression_config"),
}
# Parts of names that speak of the cache, in families' own spellings.
TELLING = (
    *(
        "layer",
        "attn",
        "attention",
        "kv",
        "head",
        "ssm",
        "mamba",
        "conv",
        "linear",
        "recurrent",
        "window",
        "share",
    ),
    *("mla", "yarn", "block", "hybrid", "chunk", "compress", "index", "sparse", "cache", "state", "swa", "lru"),
    *("delta", "cla_", "_cla", "retention", "memory", "slid", "encoder"),
)
# Fields that bear such names but leave the cache alone: norms, biases, positions, training, experts, the sizes of
# the fixed state of layers without a cache.
HARMLESS_NAMES = """
_attn_implementation _remove_final_layer_norm activation_sparsity_pattern add_bias_linear add_cross_attention
add_qkv_bias apply_query_key_layer_scaling apply_residual_connection_post_layernorm attention_bias
attention_dropout attention_in_multiplier attention_multiplier attention_out_bias attention_out_multiplier
attention_probs_dropout_prob attention_qkv_bias attention_scaling attention_softmax_in_fp32 attn_bias
attn_dropout attn_implementation attn_logit_softcapping attn_output_gate attn_pdrop attn_qk_norm attn_rotary_emb
attn_scale block_auto_adjust_ff_dim block_dim block_ff_dim block_ffn_dim_multiplier block_mlp_init_scale
block_multiple_of block_norm_eps block_out_init_scale block_use_swiglu block_use_xavier_init cache_implementation
chunk_size chunk_size_feed_forward cla_share_factor clip_qkv conv_L_cache conv_bias conv_dim conv_dim_out
conv_kernel conv_use_xavier_init cross_attention_hidden_size decoder_sparse_step do_layer_norm_before
expert_layer_offset expert_layer_period first_k_dense_replace flash_attn full_attn_mod gradient_checkpointing
head_dtype hidden_size_per_layer_input interleave_moe_layer_step interleaved_qkv is_encoder_decoder
key_multiplier layer_norm_elementwise_affine layer_norm_eps layer_norm_epsilon layer_switch layerdrop
layernorm_epsilon layernorm_full_attention_alpha layernorm_full_attention_beta layernorm_linear_attention_alpha
layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta layernorm_zero_centered_gamma linear_bias
linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads linear_value_head_dim
lm_head_bias lm_head_dtype lm_head_multiplier mamba_chunk_size mamba_conv_bias mamba_d_conv mamba_d_head
mamba_d_ssm mamba_d_state mamba_dt_limit mamba_dt_rank mamba_expand mamba_head_dim mamba_hidden_act
mamba_inner_layernorms mamba_n_groups mamba_n_heads mamba_norm_before_gate mamba_num_heads mamba_proj_bias
mamba_rms_norm mamba_ssm_cache_dtype mamba_ssm_dtype mamba_use_mlp mlp_layer_types mlp_only_layers
moe_layer_end_index moe_layer_freq moe_layer_interval moe_layer_start_index moe_layers moe_num_shared_experts
moe_shared_expert_intermediate_size moe_shared_expert_overlap mtp_hybrid_override_pattern mtp_layers_block_type
mtp_transformer_layers n_shared_experts no_rope_layer_interval no_rope_layers num_dense_layers
num_ln_in_parallel_attn num_shared_expert num_shared_experts order_of_interleaved_layers output_attentions
output_hidden_states output_router_logits parallel_attn post_layer_norm post_layernorm pruned_heads qk_head_dim
qk_layernorm qkv_bias query_pre_attn_scalar reorder_and_upcast_attn residual_in_fp32 rope_local_base_freq
scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights
shared_expert_intermediate_size shared_intermediate_size ssm_in_multiplier ssm_multipliers ssm_out_multiplier
ssm_state_size tie_encoder_decoder use_attention_norm use_cache use_conv_bias
use_flash_attention use_flash_attn use_linear_bias use_logits_scaling use_mamba_kernels use_mixed_mlp_moe
use_parallel_block use_parallel_residual use_post_attention_norm use_qk_norm use_qkv_bias
vocab_size_per_layer_input
"""
HARMLESS = frozenset(HARMLESS_NAMES.split())

# The harmless ones that tell of layers with a state.
STATE_SIZES = (
    "mamba_",
    "ssm_",
    "linear_conv",
    "linear_key",
    "linear_value",
    "linear_num",
    "conv_L",
    "conv_kernel",
)


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The text model's own part of a configuration, which multimodal ones may nest twice."""
    for name in TEXT_PARTS:
        if isinstance(part := config.get(name), Mapping):
            return text_part(part)
    return config


def family_of(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """The text model's `model_type`; without one that of the whole, or what that family calls its text part."""
    if name := text.get("model_type"):
        return str(name)
    outer = str(config.get("model_type"))
    return f"{outer}_text" if f"{outer}_text" in DEFAULTS else outer


def not_understood(
    family: str, config: Mapping[str, Any], text: Mapping[str, Any], *, stateful: bool
) -> Iterator[str]:
    """The fields that could change the cache in a way unknown here; `model_type` where the family is.

    `stateful`: some layers were read as ones with a state, so that fields which give its size are no surprise.
    """
    if family not in DEFAULTS:
        yield "model_type"
    if config.get("is_encoder_decoder"):
        yield "is_encoder_decoder"
    nested = text.get("attn_config")
    if isinstance(nested, Mapping) and nested.get("attn_type") == "multiquery_attention":
        yield "attn_config"
    yield from _disagreeing(text)
    if text.get("is_causal") is False:
        yield "is_causal"
    yield from (name for name in QUANTIZATION if any(_quantizes_cache(part.get(name)) for part in (config, text)))
    for key, value in text.items():
        if not value or key in READ or not any(part in key.lower() for part in TELLING):
            continue
        if key not in HARMLESS or (key.startswith(STATE_SIZES) and not stateful):
            yield key


def _disagreeing(text: Mapping[str, Any]) -> Iterator[str]:
    """Names of the same size whose values differ: which of them a class reads is not known."""
    for names in (LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM):
        values = {name: text[name] for name in names if text.get(name) is not None}
        if len({str(value) for value in values.values()}) > 1:
            yield list(values)[-1]


def _quantizes_cache(value: Any) -> bool:
    """Whether any part of what is said of a quantization is about the cache."""
    if not isinstance(value, Mapping):
        return False
    return any(("kv_cache" in key and part) or _quantizes_cache(part) for key, part in value.items())
