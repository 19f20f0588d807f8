"""Configurations of known models, as far as they matter for memory."""

from __future__ import annotations

from typing import Any

from playground.domain.fit.shape import ModelShape

QWEN = {"model_type": "qwen2", "max_position_embeddings": 32_768, "torch_dtype": "bfloat16", "vocab_size": 152_064}
QWEN |= {"use_sliding_window": False, "sliding_window": 131_072}


def decoder(hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers}
    return {**sizes, "num_attention_heads": heads, "num_key_value_heads": kv_heads, **more}


CONFIGS: dict[str, dict[str, Any]] = {
    "7b": decoder(3584, 18_944, 28, 28, 4, **QWEN, tie_word_embeddings=False),
    "1.5b": decoder(1536, 8960, 28, 12, 2, **QWEN, tie_word_embeddings=True),
    "0.5b": decoder(896, 4864, 24, 14, 2, **QWEN, tie_word_embeddings=True),
    "smollm2": decoder(
        *(576, 1536, 30, 9, 3),
        **{
            "model_type": "llama",
            "head_dim": 64,
            "vocab_size": 49_152,
            "max_position_embeddings": 8192,
            "dtype": "bfloat16",
        },
        tie_word_embeddings=True,
    ),
    "llama-70b": decoder(
        *(8192, 28_672, 80, 64, 8), model_type="llama", vocab_size=128_256, max_position_embeddings=131_072
    ),
    "mistral-7b-v0.1": decoder(
        *(4096, 14_336, 32, 32, 8),
        **{"model_type": "mistral", "vocab_size": 32_000, "sliding_window": 4096},
        max_position_embeddings=32_768,
    ),
    "mixtral-8x7b": decoder(
        *(4096, 14_336, 32, 32, 8),
        **{
            "model_type": "mixtral",
            "vocab_size": 32_000,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "sliding_window": None,
        },
    ),
    "gemma2-9b": decoder(
        *(3584, 14_336, 42, 16, 8),
        **{"model_type": "gemma2", "head_dim": 256, "vocab_size": 256_000, "sliding_window": 4096},
        **{"max_position_embeddings": 8192, "tie_word_embeddings": True},
    ),
    "gemma3-27b": {
        "model_type": "gemma3",
        "tie_word_embeddings": True,
        "vision_config": {},
        "text_config": decoder(
            *(5376, 21_504, 62, 32, 16),
            **{"head_dim": 128, "vocab_size": 262_208, "sliding_window": 1024, "sliding_window_pattern": 6},
            max_position_embeddings=131_072,
        ),
    },
    "deepseek-v2-lite": decoder(
        *(2048, 10_944, 27, 16, 16),
        **{
            "model_type": "deepseek_v2",
            "vocab_size": 102_400,
            "kv_lora_rank": 512,
            "q_lora_rank": None,
            "qk_rope_head_dim": 64,
        },
        **{"qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2},
        **{"moe_intermediate_size": 1408, "num_experts_per_tok": 6, "first_k_dense_replace": 1},
        max_position_embeddings=163_840,
    ),
    "deepseek-v3": decoder(
        *(7168, 18_432, 61, 128, 128),
        **{
            "model_type": "deepseek_v3",
            "vocab_size": 129_280,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
        },
        **{"qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1},
        **{"moe_intermediate_size": 2048, "num_experts_per_tok": 8, "first_k_dense_replace": 3},
        **{"max_position_embeddings": 163_840, "num_nextn_predict_layers": 1},
        quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]},
    ),
}


def sliding_layers(shape: ModelShape) -> int:
    """How many layers keep only a window."""
    return sum(cache.layers for cache in shape.caches if cache.window is not None)
