"""Reads an engine's path from its log, and from what its /metrics page tells of the cache.

The lines are those of vLLM 0.26 to 0.33 on GPUs and CPUs. What a version does not print stays unknown, but for
asynchronous scheduling: from 0.28 on only its absence is logged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from playground.domain.record.engine_path import EnginePath

logger = logging.getLogger(__name__)

# An engine is ready long before its log is as long as this.
MOST_BYTES = 2**22
# Digits: no count is longer.
LONGEST_NUMBER = 18
CACHE_INFO = "vllm:cache_config_info"
CONFIG = re.compile(r"Initializing a V1 LLM engine \(v\S+\) with config: (.*)")
ARGUMENTS = re.compile(r"non-default args: (\{.*\})")
RUNNER_V2 = re.compile(r"Using V2 Model Runner|\[model_runner\.py:\d+\] (?:Starting to load|Loading)")
RUNNER_V1 = re.compile(
    r"using the V1 model runner instead|\[[gcx]pu_model_runner\.py:\d+\] (?:Starting to load|Loading)"
)
ASYNC = re.compile(r"Asynchronous scheduling is (enabled|disabled)")
NO_ASYNC = re.compile(r"Async scheduling (?:not supported|will be disabled|is disabled|is not compatible)")
ATTENTION = re.compile(r"Using (?:AttentionBackendEnum\.)?([A-Z][A-Z0-9_]+) (?:attention )?backend\b")
GRAPHS = re.compile(r"(?:[Oo]verriding cudagraph_mode(?: from \S+)? to |setting cudagraph_mode=)(\w+)")
SCHEDULED = re.compile(r"max_num_scheduled_tokens is set to (\d+)")
BATCHED = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")
CACHE = re.compile(r"KV cache size: ([\d,]+) tokens")
KERNEL = re.compile(
    r"(?:Using|Selected) '?([\w.-]+)'? (?:for (?:\w+LinearMethod|CompressedTensors\w+|mixed-precision linear)"
    r"|for \w+ GEMM|(?:\w+ )?MoE backend|for top-p & top-k sampling)"
)
EXECUTOR = re.compile(r"\[(multiproc|uniproc|ray)_executor(?:_v2)?\.py:")


def read(log: Path, metrics: str) -> EnginePath:
    """`metrics`: the engine's page, or nothing. Blocking. Never raises: an engine serves without it."""
    try:
        with log.open("rb") as file:
            text = file.read(MOST_BYTES).decode(errors="replace")
        return path_of(text, metrics)
    except FileNotFoundError:
        # Temporary folders are tidied.
        return path_of("", metrics)
    except Exception:
        logger.exception("the path of the engine is not read from %s", log)
        return EnginePath()


def path_of(log: str, metrics: str = "") -> EnginePath:
    """The path of the engine with this log. A draft model's own lines come after the target's."""
    # Of engines that share a log, the last.
    start = max((match.start() for match in ARGUMENTS.finditer(log)), default=0)
    log = log[start:]
    config, cache = _first(CONFIG, log) or "", _cache_info(metrics)
    arguments = _first(ARGUMENTS, log) or ""
    values: dict[str, Any] = {
        "model_runner": _runner(log),
        "async_scheduling": _asynchronous(log, config, arguments),
        "attention_backend": _first(ATTENTION, log),
        "cudagraph_mode": _last(GRAPHS, log[log.find(config) :])
        or _setting(config, r"'cudagraph_mode': <\w+\.(\w+)"),
        "cudagraph_sizes": _sizes(_setting(config, r"'cudagraph_capture_sizes': \[([\d, ]*)\]")),
        "kv_cache_tokens": _number(_first(CACHE, log)) or _tokens(cache),
        "kv_cache_dtype": _setting(config, r"kv_cache_dtype=(\w+)") or cache.get("cache_dtype"),
        "dtype": _setting(config, r"\bdtype=(?:torch\.)?(\w+)"),
        "prefix_caching": _switch(_setting(config, r"enable_prefix_caching=(\w+)")),
        "chunked_prefill": _switch(_setting(config, r"enable_chunked_prefill=(\w+)")),
        "max_num_seqs": _number(_setting(arguments, r"'max_num_seqs': (\d+)")),
        "kernels": tuple(dict.fromkeys(map(_kernel, KERNEL.finditer(log)))) or None,
        "executor": _first(EXECUTOR, log),
    }
    batched = _first(BATCHED, log) or _setting(config, r"'compile_ranges_endpoints': \[(?:\d+, )*(\d+)\]")
    values["max_num_batched_tokens"] = _number(batched)
    values["max_num_scheduled_tokens"] = _number(_first(SCHEDULED, log) or batched)
    return EnginePath(**values)


def _runner(log: str) -> str | None:
    if RUNNER_V2.search(log):
        return "V2"
    return "V1" if RUNNER_V1.search(log) else None


def _kernel(match: re.Match[str]) -> str:
    return f"{match[1]} sampling" if match[0].endswith("sampling") else match[1]


def _asynchronous(log: str, config: str, arguments: str) -> bool | None:
    """vLLM decides it last for a CPU, and there is none; elsewhere it is on unless a line or an option says no."""
    if "device_config=cpu" in config:
        return False
    if (stated := _first(ASYNC, log)) is not None:
        return stated == "enabled"
    if NO_ASYNC.search(log) or "'async_scheduling': False" in arguments:
        return False
    return True if "device_config=cuda" in config else None


def _cache_info(metrics: str) -> Mapping[str, str]:
    """The labels of the first engine."""
    lines = [line for line in metrics.splitlines() if line.startswith(CACHE_INFO)]
    try:
        samples = [
            each for family in text_string_to_metric_families("\n".join(lines) + "\n") for each in family.samples
        ]
    except ValueError:
        # A line that was cut off.
        return {}
    return samples[0].labels if samples else {}


def _tokens(cache: Mapping[str, str]) -> int | None:
    """vLLM 0.32 tells the tokens; before, blocks of `block_size`."""
    tokens = _number(cache.get("kv_cache_size_tokens"))
    blocks, size = _number(cache.get("num_gpu_blocks")), _number(cache.get("block_size"))
    return tokens if tokens is not None or blocks is None or size is None else blocks * size


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    return next((match[1] for match in reversed([*pattern.finditer(text)])), None)


def _setting(text: str, pattern: str) -> str | None:
    return _first(re.compile(pattern), text)


def _number(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def _sizes(text: str | None) -> tuple[int, ...] | None:
    sizes = [_number(size.strip()) for size in (text or "").split(",")]
    return tuple(size for size in sizes if size is not None) or None


def _switch(text: str | None) -> bool | None:
    return {"True": True, "False": False}.get(text or "")
