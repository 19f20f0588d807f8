"""Bytes of KV cache a token and a sequence: our estimate from config.json against what vLLM allocates.

usage: python -m benchmarks.kv_report [--python RUNTIME] [--family NAME ...]

Each family is a tiny model without weights (`load_format="dummy"`, no tokenizer), started once in a process of its
own: on a CPU some 20 s each. A family that the device or this vLLM can't run says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playground.domain.fit.kv_cache import kv_bytes
from playground.domain.fit.shape import ModelShape

LENGTH, BATCHED, START_S = 4096, 2048, 240
SIZES = {
    **{"hidden_size": 512, "intermediate_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8},
    **{"num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1024, "max_position_embeddings": LENGTH},
    **{"torch_dtype": "bfloat16", "tie_word_embeddings": True},
}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
LATENT = {
    **{
        "kv_lora_rank": 512,
        "q_lora_rank": None,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    },
    **{"moe_intermediate_size": 256, "n_routed_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 8},
}
MAMBA = {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_heads": 16, "mamba_d_head": 64}


def _family(architecture: str, model_type: str, **more: Any) -> dict[str, Any]:
    return {**SIZES, "architectures": [architecture], "model_type": model_type, **more}


def _without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}


def _kinds(period: int, others: str, full: str = "full_attention") -> list[str]:
    return [others if (layer + 1) % period else full for layer in range(8)]


FAMILIES: dict[str, dict[str, Any]] = {
    "llama": _family("LlamaForCausalLM", "llama"),
    "qwen3-moe": _family("Qwen3MoeForCausalLM", "qwen3_moe", **EXPERTS),
    "mixtral": _family("MixtralForCausalLM", "mixtral", **EXPERTS),
    "falcon, multi-query": _without(
        _family("FalconForCausalLM", "falcon", multi_query=True, alibi=False), "head_dim", "num_key_value_heads"
    ),
    "gemma2, windows": _family("Gemma2ForCausalLM", "gemma2", sliding_window=512),
    "gemma3, windows": _family("Gemma3ForCausalLM", "gemma3_text", sliding_window=512),
    "gemma3n, shared caches": _family(
        *("Gemma3nForCausalLM", "gemma3n_text"),
        **{"num_kv_shared_layers": 4, "layer_types": _kinds(2, "sliding_attention"), "sliding_window": 512},
        **{"intermediate_size": [512] * 8, "activation_sparsity_pattern": [0.0] * 8},
        **{"vocab_size_per_layer_input": 1024, "hidden_size_per_layer_input": 64},
    ),
    "gpt-oss, windows": _family("GptOssForCausalLM", "gpt_oss", sliding_window=128, **EXPERTS),
    "deepseek-v2, latent": _family("DeepseekV2ForCausalLM", "deepseek_v2", first_k_dense_replace=8, **LATENT),
    "qwen3-next, hybrid": _family(
        *("Qwen3NextForCausalLM", "qwen3_next"),
        **{"linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 64},
        **{"linear_value_head_dim": 64, "shared_expert_intermediate_size": 256, **EXPERTS},
    ),
    "jamba, hybrid": _family(
        *("JambaForCausalLM", "jamba"),
        **{"attn_layer_period": 4, "attn_layer_offset": 3, "mamba_d_state": 16, "mamba_d_conv": 4, **EXPERTS},
    ),
    "granite, hybrid": _family(
        *("GraniteMoeHybridForCausalLM", "granitemoehybrid"),
        **{"layer_types": _kinds(4, "mamba", "attention"), "shared_intermediate_size": 512, **MAMBA, **EXPERTS},
    ),
}
# What runs in the engine's own interpreter: the folder's model, what each of its layers keeps, as one JSON line.
CHILD = f"""
import json, sys
from vllm import LLM
from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config as concurrency
if __name__ == "__main__":
    llm = LLM(sys.argv[1], load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, max_num_seqs=8,
              max_model_len={LENGTH}, max_num_batched_tokens={BATCHED}, kv_cache_memory_bytes=2**28,
              gpu_memory_utilization=0.3, limit_mm_per_prompt=dict(image=0, video=0, audio=0))
    cache = llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_config
    token, state = 0, 0
    for group in cache.kv_cache_groups:
        specs = getattr(group.kv_cache_spec, "kv_cache_specs", None)
        for name in group.layer_names:
            spec = specs[name] if specs else group.kv_cache_spec
            if "Mamba" in type(spec).__name__:
                state += spec.page_size_bytes
            else:
                token += getattr(spec, "real_page_size_bytes", spec.page_size_bytes) / spec.block_size
    # A block has a page of each layer of the largest group; groups share the blocks.
    layers = max(len(group.layer_names) for group in cache.kv_cache_groups)
    page = max(group.kv_cache_spec.page_size_bytes for group in cache.kv_cache_groups)
    if len(cache.kv_cache_groups) == 1 and specs:
        layers, page = 1, sum(spec.page_size_bytes for spec in specs.values())
    sequence = layers * page * cache.num_blocks / concurrency(llm.llm_engine.vllm_config, cache)
    print("REPORT " + json.dumps(dict(token=token, state=state, sequence=sequence)), flush=True)
"""


def report(python: str, config: dict[str, Any]) -> dict[str, float] | str:
    """What vLLM allocates: bytes a token, a sequence, and of states; or the last line of why it did not start."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        (Path(folder) / "child.py").write_text(CHILD)
        quiet = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        try:
            done = subprocess.run(
                [python, str(Path(folder) / "child.py"), folder],
                env={**os.environ, **quiet, "VLLM_CPU_KVCACHE_SPACE": "1"},
                capture_output=True,
                text=True,
                timeout=START_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not start in {START_S} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("REPORT ")]
    if not lines:
        return (done.stderr.strip() or done.stdout.strip() or "no answer").splitlines()[-1][:150]
    answer: dict[str, float] = json.loads(lines[-1].removeprefix("REPORT "))
    return answer


def main(python: str, names: list[str]) -> None:
    print("family | bytes a token: ours | vLLM's | ratio | sequence: ours | vLLM's | ratio")
    for name in names:
        shape = ModelShape.of(FAMILIES[name])
        assert shape is not None
        token = kv_bytes(shape, 1, 2, batched=1)
        sequence = kv_bytes(shape, LENGTH, 2, batched=BATCHED)
        answer = report(python, FAMILIES[name])
        if isinstance(answer, str):
            print(f"{name} | {token} | not started: {answer}", flush=True)
            continue
        tokens = f"{token} | {answer['token']:.0f} | {token / answer['token']:.3f}"
        sequences = f"{sequence} | {answer['sequence']:.0f} | {sequence / answer['sequence']:.3f}"
        print(f"{name} | {tokens} | {sequences} (states {answer['state']:.0f})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--family", nargs="*", default=list(FAMILIES), choices=FAMILIES)
    arguments = parser.parse_args()
    main(arguments.python, arguments.family)
