"""Text Generation Inference. Its options: huggingface.co/docs/text-generation-inference, "launcher"."""

from __future__ import annotations

from .kind import Kind, Launch, listening
from .program import Program, script, version_of


def _find() -> Program | None:
    path = script("text-generation-launcher")
    return Program((path,), version_of(path), "cuda") if path else None


def _words(launch: Launch) -> list[str]:
    return [f"--model-id={launch.target}", *listening(launch, host="--hostname")]


KIND = Kind(
    name="tgi",
    find=_find,
    brings="github.com/huggingface/text-generation-inference",
    typed="text-generation-launcher",
    words=_words,
    knobs={
        "max_num_batched_tokens": "--max-batch-prefill-tokens",
        "max_model_len": "--max-total-tokens",
        "gpu_memory_utilization": "--cuda-memory-fraction",
        "kv_cache_dtype": "--kv-cache-dtype",
        "dtype": "--dtype",
        "quantization": "--quantize",
        "tensor_parallel_size": "--num-shard",
    },
    speculation={"ngram": lambda launch: [f"--speculate={launch.k}"]},
    counters={"running": "tgi_batch_current_size", "waiting": "tgi_queue_size"},
    trust_flag="--trust-remote-code",
)
