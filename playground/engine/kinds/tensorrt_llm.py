"""TensorRT-LLM's server, `trtllm-serve`. Its options: nvidia.github.io/TensorRT-LLM, "trtllm-serve"."""

from __future__ import annotations

from .kind import Kind, Launch, listening
from .program import Program, package, script


def _find() -> Program | None:
    path = script("trtllm-serve")
    return Program((path,), package("tensorrt_llm") or "", "cuda") if path else None


def _words(launch: Launch) -> list[str]:
    return [launch.target, *listening(launch), "--backend=pytorch"]


KIND = Kind(
    name="tensorrt-llm",
    find=_find,
    brings="pip install tensorrt_llm",
    typed="trtllm-serve",
    words=_words,
    knobs={
        "max_num_seqs": "--max_batch_size",
        "max_num_batched_tokens": "--max_num_tokens",
        "max_model_len": "--max_seq_len",
        "gpu_memory_utilization": "--kv_cache_free_gpu_memory_fraction",
        "tensor_parallel_size": "--tp_size",
        "pipeline_parallel_size": "--pp_size",
    },
    answers_to=lambda launch: launch.target,
    trust_flag="--trust_remote_code",
)
