"""SGLang's server. Its options: docs.sglang.ai, "Server Arguments" and "Speculative Decoding"."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .kind import SERVED_NAME, Kind, Launch, Switch, Words, listening
from .program import Program, package


def _find() -> Program | None:
    version = package("sglang")
    return Program((sys.executable, "-m", "sglang.launch_server"), version, "cuda") if version else None


def _words(launch: Launch) -> list[str]:
    words = [f"--model-path={launch.target}", f"--served-model-name={SERVED_NAME}"]
    return [*words, *listening(launch), "--enable-metrics"]


def _speculating(algorithm: str) -> Words:
    def words(launch: Launch) -> list[str]:
        drafted = [f"--speculative-algorithm={algorithm}", f"--speculative-num-draft-tokens={launch.k + 1}"]
        if launch.draft is None:
            return drafted
        # A chain, as vLLM drafts it, and no tree.
        chain = [f"--speculative-num-steps={launch.k}", "--speculative-eagle-topk=1"]
        return [*drafted, f"--speculative-draft-model-path={launch.draft}", *chain]

    return words


METHODS: dict[str, Callable[[Launch], list[str]]] = {
    "draft_model": _speculating("STANDALONE"),
    "eagle": _speculating("EAGLE"),
    "eagle3": _speculating("EAGLE3"),
    "ngram": _speculating("NGRAM"),
}

KIND = Kind(
    name="sglang",
    find=_find,
    brings="pip install sglang",
    typed="python -m sglang.launch_server",
    words=_words,
    knobs={
        "max_num_seqs": "--max-running-requests",
        "max_num_batched_tokens": "--chunked-prefill-size",
        "max_model_len": "--context-length",
        "gpu_memory_utilization": "--mem-fraction-static",
        "kv_cache_dtype": "--kv-cache-dtype",
        "block_size": "--page-size",
        "enable_prefix_caching": Switch(off="--disable-radix-cache"),
        "async_scheduling": Switch(off="--disable-overlap-schedule"),
        "dtype": "--dtype",
        "quantization": "--quantization",
        "load_format": "--load-format",
        "seed": "--random-seed",
        "enforce_eager": Switch(on="--disable-cuda-graph"),
        "attention_backend": "--attention-backend",
        "tensor_parallel_size": "--tp-size",
        "pipeline_parallel_size": "--pp-size",
        "data_parallel_size": "--dp-size",
    },
    speculation=METHODS,
    counters={
        "running": "sglang:num_running_reqs",
        "waiting": "sglang:num_queue_reqs",
        "kv_cache_usage": "sglang:token_usage",
        "generation_tokens": "sglang:generation_tokens_total",
    },
    trust_flag="--trust-remote-code",
)
