"""llama.cpp's server: `llama-server`, or the same server in the package xllamacpp. It reads GGUF files."""

from __future__ import annotations

import sys
from pathlib import Path

from .kind import Kind, Launch, Switch, listening
from .program import Program, has_gpus, package, script, version_of

PACKAGED = Path(__file__).with_name("llama_server.py")
# Its default; each slot holds one request.
SLOTS = 4


def _find() -> Program | None:
    if path := script("llama-server"):
        return Program((path,), version_of(path), "cuda" if has_gpus() else "cpu")
    version = package("xllamacpp")
    # The wheel on the package index computes on the processor.
    return Program((sys.executable, str(PACKAGED)), version, "cpu") if version else None


def _words(launch: Launch) -> list[str]:
    knobs = launch.settings.knobs
    words = [f"--model={launch.target}", *listening(launch), f"--parallel={knobs.max_num_seqs or SLOTS}"]
    if isinstance(knobs.max_model_len, int):
        # Its context is that of all slots together.
        words.append(f"--ctx-size={knobs.max_model_len * (knobs.max_num_seqs or SLOTS)}")
    if launch.program.device == "cpu":
        words.append(f"--threads={launch.cores}")
    return [*words, "--metrics"]


def _draft(launch: Launch) -> list[str]:
    return [f"--model-draft={launch.draft}", f"--draft-max={launch.k}"]


KIND = Kind(
    name="llama-cpp",
    find=_find,
    brings="pip install xllamacpp",
    typed="llama-server",
    words=_words,
    # The first two are part of the words.
    knobs={
        "max_num_seqs": Switch(),
        "max_model_len": Switch(),
        "max_num_batched_tokens": "--batch-size",
        "enable_prefix_caching": Switch(off="--no-cache-prompt"),
        "seed": "--seed",
    },
    speculation={"draft_model": _draft},
    counters={
        "running": "llamacpp:requests_processing",
        "waiting": "llamacpp:requests_deferred",
        "generation_tokens": "llamacpp:tokens_predicted_total",
        "drafts": "llamacpp:spec_decode_num_drafts_total",
        "draft_tokens": "llamacpp:spec_decode_num_draft_tokens_total",
        "accepted_tokens": "llamacpp:spec_decode_num_accepted_tokens_total",
        "accepted_per_position": "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
        "prefix_cache_queries": "llamacpp:prompt_tokens_total",
        "prefix_cache_hits": "llamacpp:prompt_tokens_cached_total",
    },
    gguf=True,
)
