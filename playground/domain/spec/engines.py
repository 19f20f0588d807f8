"""The engines other than vLLM, by the names that they have as a side's runtime."""

from __future__ import annotations

TITLES = {
    "transformers": "Transformers",
    "transformers-batching": "Transformers, continuous batching",
    "llama-cpp": "llama.cpp",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "tgi": "TGI",
}


def versioned(runtime: str, version: str) -> str:
    """An engine and its version, as "vLLM 0.32.0". Other runtimes than these are builds of vLLM."""
    return f"{TITLES.get(runtime, 'vLLM')} {version}"
