"""The kinds of engines that a side may be beside vLLM."""

from __future__ import annotations

from playground.config import Config

from . import llama_cpp, sglang, template, tensorrt_llm, tgi, transformers
from .kind import Kind

KINDS = {
    kind.name: kind
    for kind in (
        transformers.STATIC,
        transformers.BATCHING,
        llama_cpp.KIND,
        sglang.KIND,
        tensorrt_llm.KIND,
        tgi.KIND,
    )
}


def kinds(config: Config) -> dict[str, Kind]:
    """All by their names, those of the host's configuration too."""
    return {**KINDS, **{name: template.kind(name, command) for name, command in config.engines.items()}}
