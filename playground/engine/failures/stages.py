"""How far an engine's start has got, by its log."""

from __future__ import annotations

import re
from collections.abc import Iterable

# The stages of a start, and the log lines that show them. A start never falls back to an earlier stage.
STAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("importing", re.compile(r"$.")),
    ("configuring", re.compile(r"non-default args|Resolved architecture")),
    ("engine_core", re.compile(r"Initializing a V1 LLM engine")),
    (
        "loading_weights",
        re.compile(r"Starting to load model|Loading model from scratch|Loading safetensors|Loading weights"),
    ),
    ("loading_draft", re.compile(r"Loading drafter model")),
    ("profiling", re.compile(r"Model loading took")),
    ("compiling", re.compile(r"Dynamo bytecode transform|Compiling a graph|Start compiling|Cache the graph")),
    (
        "allocating_kv",
        re.compile(r"KV cache size|Available KV cache memory|GiB for KV cache|reserved .* KV cache"),
    ),
    ("warming_up", re.compile(r"Warming up|Capturing CUDA graph|Graph capturing|\[Autotuner\]|[Aa]utotuning")),
    ("serving", re.compile(r"Starting vLLM (?:API )?server|Application startup complete")),
)
STAGE_NAMES = ("waiting", *(name for name, _ in STAGES), "ready")
# Only for an engine that died after its start: one that runs is ready.
ANSWERING = "answering"


def stage_of(line: str) -> str | None:
    """The stage that a log line tells of, or None."""
    return next((name for name, pattern in STAGES if pattern.search(line)), None)


def later(stage: str, other: str) -> bool:
    """Whether `stage` comes after `other`."""
    return STAGE_NAMES.index(stage) > STAGE_NAMES.index(other)


def reached(log: Iterable[str]) -> str:
    """The last stage of an engine that is dead now."""
    latest = "importing"
    for line in log:
        if "Application startup complete" in line:
            return ANSWERING
        if (stage := stage_of(line)) is not None and later(stage, latest):
            latest = stage
    return latest
