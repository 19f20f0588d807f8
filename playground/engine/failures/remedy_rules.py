"""From a problem's figures and the failing side's settings to the changes that are worth a try, cause by cause."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from playground.domain.message import Message
from playground.domain.spec.change import Change, Value
from playground.domain.spec.settings import DraftModel, EngineSettings

# vLLM's own, 0.26 to 0.33.
DEFAULT_GPU_SHARE = 0.92
# Asked for less than this much of a card, no engine starts.
LEAST_GPU_SHARE = 0.05
# What graphs and fragments take beside what the engine plans.
GPU_MARGIN = 0.05
# Beside what the log rounds, the cache has a block that holds no tokens.
KV_MARGIN = 1.05
# Halved further, batching is as good as off.
LEAST_SEQS = 2
LEAST_BATCHED_TOKENS = 512

Figures = Mapping[str, object]
Changes = list[Change]
Rule = Callable[[Figures, EngineSettings], Changes]


def nothing(figures: Figures, settings: EngineSettings) -> Changes:
    return []


def _default(knob: str) -> Rule:
    """Give this knob back to the engine."""
    return _set(f"knobs.{knob}", None)


def _set(key: str, value: Value) -> Rule:
    return lambda figures, settings: [Change(key, value)]


def _number(figures: Figures, name: str) -> float | None:
    found = figures.get(name)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _whole(figures: Figures, name: str, knob: str) -> Changes:
    """The knob set to a number that the log names."""
    found = _number(figures, name)
    return [] if found is None or found < 1 else [Change(f"knobs.{knob}", int(found))]


def _no_draft(settings: EngineSettings) -> Changes:
    return [Change("speculation", "off")] if settings.draft is not None else []


def _no_speculation(figures: Figures, settings: EngineSettings) -> Changes:
    return [Change("speculation", "off")] if settings.speculates else []


def _halved(figures: Figures, settings: EngineSettings, knob: str, least: int) -> Changes:
    current = getattr(settings.knobs, knob) or _number(figures, knob)
    return [Change(f"knobs.{knob}", int(current) // 2)] if current and int(current) // 2 >= least else []


def _smaller_batches(figures: Figures, settings: EngineSettings) -> Changes:
    return [
        *_halved(figures, settings, "max_num_batched_tokens", LEAST_BATCHED_TOKENS),
        *_halved(figures, settings, "max_num_seqs", LEAST_SEQS),
    ]


def _gpu_share(figures: Figures, settings: EngineSettings) -> float:
    """The share of the card that the engine was started with."""
    started = _number(figures, "gpu_memory_utilization")
    return settings.knobs.gpu_memory_utilization or started or DEFAULT_GPU_SHARE


def _share(value: float) -> Changes:
    return [Change("knobs.gpu_memory_utilization", value)] if LEAST_GPU_SHARE <= value <= 1 else []


def _what_is_free(figures: Figures, settings: EngineSettings) -> Changes:
    """gpu_memory_utilization as large as the free memory allows, in hundredths."""
    free, total = _number(figures, "free"), _number(figures, "total")
    return [] if free is None or not total else _share(math.floor(100 * free / total) / 100)


def _room_for_kv(figures: Figures, settings: EngineSettings) -> Changes:
    """Less of what takes memory beside the cache; then more of the card, where that was less than the default.

    Not the default at once: less was asked for because no more was free, or for another engine there.
    """
    if settings.knobs.kv_cache_memory_bytes is not None:
        # What was asked for by hand is too little.
        return [Change("knobs.kv_cache_memory_bytes", None)]
    own = settings.knobs.gpu_memory_utilization
    more = _share(round((own + DEFAULT_GPU_SHARE) / 2, 2)) if own and own < DEFAULT_GPU_SHARE else []
    return [*_no_draft(settings), *_smaller_batches(figures, settings), *more]


def _kv_bytes(gib: float) -> Change:
    """In whole MiB."""
    return Change("knobs.kv_cache_memory_bytes", math.ceil(gib * 1024) * 1024**2)


def _one_request(figures: Figures, settings: EngineSettings) -> Changes:
    shorter = _whole(figures, "fits", "max_model_len")
    needed = _number(figures, "needed")
    if needed is not None and _number(figures, "kv_set") is not None:
        # On a CPU the cache has a size of its own, which is no share of anything.
        return [*shorter, _kv_bytes(needed * KV_MARGIN)]
    return [*shorter, *_room_for_kv(figures, settings)]


def _context(figures: Figures, settings: EngineSettings) -> Changes:
    """The draft's may be meant: its limit is a field of the speculation."""
    limit = _number(figures, "limit")
    drafting = settings.speculation.model_dump().get("max_model_len")
    if limit is not None and drafting is not None and drafting == figures.get("asked"):
        return [Change("speculation.max_model_len", int(limit))]
    return _whole(figures, "limit", "max_model_len")


def _vocabulary(figures: Figures, settings: EngineSettings) -> Changes:
    """Padding alone may make the sizes differ: then the drafts' tokens can be mapped."""
    mapped = [Change("speculation.use_heterogeneous_vocab", True)]
    return [*(mapped if isinstance(settings.speculation, DraftModel) else []), Change("speculation", "off")]


def _gpu_memory(figures: Figures, settings: EngineSettings) -> Changes:
    """By the stage: weights, the trial run's activations, CUDA graphs, or requests took the last of it."""
    stage = figures.get("stage")
    at = stage.message_id.removeprefix("stage.") if isinstance(stage, Message) else ""
    lower = _share(round(_gpu_share(figures, settings) - GPU_MARGIN, 2))
    if at in ("profiling", "compiling"):
        return [*_smaller_batches(figures, settings), *_no_draft(settings)]
    if at in ("allocating_kv", "warming_up"):
        return [
            *lower,
            Change("knobs.enforce_eager", True),
            *_halved(figures, settings, "max_num_seqs", LEAST_SEQS),
        ]
    if at in ("serving", "answering"):
        return [*lower, *_smaller_batches(figures, settings)]
    return _no_draft(settings)


def _sampler(figures: Figures, settings: EngineSettings) -> Changes:
    fewer = _halved({"max_num_seqs": figures.get("seqs")}, settings, "max_num_seqs", LEAST_SEQS)
    return [*fewer, *_share(round(_gpu_share(figures, settings) - GPU_MARGIN, 2))]


def _less_memory(figures: Figures, settings: EngineSettings) -> Changes:
    """Of the machine's own: the KV cache if it was sized by hand, a draft, or half of each weight."""
    own = settings.knobs.kv_cache_memory_bytes
    smaller = [Change("knobs.kv_cache_memory_bytes", own // 2)] if own and own > 1 else []
    return [*smaller, *_no_draft(settings), Change("knobs.dtype", "bfloat16")]


def _kv_that_fits(figures: Figures, settings: EngineSettings) -> Changes:
    """Half of what is free: the engine, and another one, want some of it too."""
    free = _number(figures, "free")
    return [_kv_bytes(free / 2)] if free else []


def _one_part(figures: Figures, settings: EngineSettings) -> Changes:
    knobs = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    return [Change(f"knobs.{knob}", None) for knob in knobs]


def _without_gpu(figures: Figures, settings: EngineSettings) -> Changes:
    """The same drafts from the processor, where the GPU should have made them."""
    same = [Change("speculation.method", "ngram")] if settings.speculation.method == "ngram_gpu" else []
    return [*same, *_no_speculation(figures, settings)]


def _needless(figures: Figures, settings: EngineSettings) -> Changes:
    return _no_speculation(figures, settings) if settings.speculation.method == "suffix" else []


def _gpus(figures: Figures, settings: EngineSettings) -> Changes:
    """All of them for one copy of the model."""
    rest = [Change(f"knobs.{knob}", None) for knob in ("pipeline_parallel_size", "data_parallel_size")]
    return [*_whole(figures, "available", "tensor_parallel_size"), *rest]


def _heads(figures: Figures, settings: EngineSettings) -> Changes:
    """The largest smaller number of parts that the heads divide into."""
    heads, size = _number(figures, "heads"), _number(figures, "size")
    if heads is None or size is None:
        return []
    fits = max(part for part in range(1, int(size)) if int(heads) % part == 0)
    return [Change("knobs.tensor_parallel_size", fits)]


def _supported_dtype(figures: Figures, settings: EngineSettings) -> Changes:
    listed = [text.strip().removeprefix("torch.") for text in str(figures.get("supported", "")).split(",")]
    offered = [Change("knobs.dtype", dtype) for dtype in listed if dtype in ("float32", "float16", "bfloat16")]
    return [*offered, *_default("quantization")(figures, settings)]


def _full_prefill(figures: Figures, settings: EngineSettings) -> Changes:
    return [
        *_whole(figures, "length", "max_num_batched_tokens"),
        Change("knobs.enable_chunked_prefill", None),
    ]


def _batch(figures: Figures, settings: EngineSettings) -> Changes:
    return [*_whole(figures, "seqs", "max_num_batched_tokens"), *_whole(figures, "tokens", "max_num_seqs")]


def _argument(figures: Figures, settings: EngineSettings) -> Changes:
    """The knob that the refused option came from."""
    knob = str(figures.get("flag")).removeprefix("--").replace("-", "_")
    return [Change(f"knobs.{knob}", None)]


def _stuck(figures: Figures, settings: EngineSettings) -> Changes:
    """Compiling and capturing graphs take longest, and can be done without."""
    stage = figures.get("stage")
    slow = isinstance(stage, Message) and stage.message_id in ("stage.compiling", "stage.warming_up")
    return [Change("knobs.enforce_eager", True)] if slow else []


def _draft_missing(figures: Figures, settings: EngineSettings) -> Changes:
    return _no_draft(settings) if figures.get("name") == settings.draft != settings.target else []


def _shorter(figures: Figures, settings: EngineSettings) -> Changes:
    """The longest sequence, in steps of 256 tokens, for which there is room."""
    tokens, sequence, room = (_number(figures, name) for name in ("tokens", "sequence", "room"))
    length = int(tokens * room / sequence) // 256 * 256 if tokens and sequence and room else 0
    return [*([Change("knobs.max_model_len", length)] if length else []), *_no_draft(settings)]


# Message id -> what to change.
RULES: dict[str, Rule] = {
    "failure.vocabulary": _vocabulary,
    "failure.draft_parallel": _set("speculation.draft_tensor_parallel_size", None),
    "failure.context_too_long": _context,
    "failure.prefill_too_small": _full_prefill,
    "failure.batch_too_small": _batch,
    "failure.kv_too_small": _one_request,
    "failure.no_kv_memory": _room_for_kv,
    "failure.gpu_busy": _what_is_free,
    "failure.cpu_busy": _what_is_free,
    "failure.cpu_kv": _kv_that_fits,
    "failure.gpu_memory": _gpu_memory,
    "failure.sampler_memory": _sampler,
    "failure.cpu_memory": _less_memory,
    "failure.killed": _less_memory,
    "failure.core_died": _less_memory,
    "failure.too_many_gpus": _gpus,
    "failure.cpu_parallel": _one_part,
    "failure.needs_gpu": _without_gpu,
    "failure.heads": _heads,
    "failure.dependency": _needless,
    "failure.bfloat16": _set("knobs.dtype", "float16"),
    "failure.quantization_dtype": _supported_dtype,
    "failure.quantization": _default("quantization"),
    "failure.head_size": _default("attention_backend"),
    "failure.backend": _default("attention_backend"),
    "failure.method": _no_speculation,
    "failure.compiler": _set("knobs.enforce_eager", True),
    "failure.bad_argument": _argument,
    "failure.timeout": _stuck,
    "settings.too_many_gpus": _gpus,
    "preflight.weights_too_big": lambda figures, settings: _no_draft(settings),
    "preflight.no_sequence": _shorter,
    "preflight.together": _default("gpu_memory_utilization"),
    "preflight.heterogeneous_greedy": _set("speculation.draft_sample_method", None),
    **dict.fromkeys(("preflight.padding", "preflight.vocabulary_size", "preflight.other_vocabulary"), _vocabulary),
    **dict.fromkeys(
        ("preflight.no_heterogeneous", "preflight.method_not_on_cpu", "preflight.no_arctic", "preflight.min_p"),
        _no_speculation,
    ),
    **dict.fromkeys(("model.no_hub", "model.hub_missing", "model.gated", "model.unknown"), _draft_missing),
}
