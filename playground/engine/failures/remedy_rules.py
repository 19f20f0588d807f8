"""What to change after a failure: from its figures and the failing side's settings to changes worth a try."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from playground.domain.fit.memory import DEFAULT_UTILIZATION
from playground.domain.message import Message
from playground.domain.spec.change import Change, Value
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel

# No engine starts with a smaller share of a card.
LEAST_GPU_SHARE = 0.05
# The share that CUDA graphs and fragmentation take beyond what the engine plans.
GPU_MARGIN = 0.05
# For the log's rounding, and for the cache's block that holds no tokens.
KV_MARGIN = 1.05
# Halved further, batching is as good as off.
LEAST_SEQS = 2
LEAST_BATCHED_TOKENS = 512

# vLLM's own classes call these knobs otherwise.
FIELD_NAMES = {"cache_dtype": "kv_cache_dtype", "policy": "scheduling_policy"}

Figures = Mapping[str, object]
Changes = list[Change]
Rule = Callable[[Figures, EngineSettings], Changes]


def nothing(figures: Figures, settings: EngineSettings) -> Changes:
    return []


def back_to_default(knob: str) -> Rule:
    """Set this knob to the engine's default."""
    return set_to(f"knobs.{knob}", None)


def set_to(key: str, value: Value) -> Rule:
    return lambda figures, settings: [Change(key, value)]


def _number(figures: Figures, name: str) -> float | None:
    value = figures.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(figures: Figures, name: str, knob: str) -> Changes:
    """The knob set to a number that the log names."""
    value = _number(figures, name)
    return [] if value is None or value < 1 else [Change(f"knobs.{knob}", int(value))]


def no_draft(figures: Figures, settings: EngineSettings) -> Changes:
    return [Change("speculation", "off")] if settings.draft is not None else []


def no_speculation(figures: Figures, settings: EngineSettings) -> Changes:
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
    return settings.knobs.gpu_memory_utilization or started or DEFAULT_UTILIZATION


def _share(value: float) -> Changes:
    return [Change("knobs.gpu_memory_utilization", value)] if LEAST_GPU_SHARE <= value <= 1 else []


def what_is_free(figures: Figures, settings: EngineSettings) -> Changes:
    """gpu_memory_utilization as large as the free memory allows, in hundredths."""
    free, total = _number(figures, "free"), _number(figures, "total")
    return [] if free is None or not total else _share(math.floor(100 * free / total) / 100)


def room_for_kv(figures: Figures, settings: EngineSettings) -> Changes:
    """Reduce what takes memory beside the cache; then raise the share of the card, where it is below the default.

    Not to the default at once: it may be lower since no more was free, or because of another engine there.
    """
    if settings.knobs.kv_cache_memory_bytes is not None:
        # The size that was set is too small.
        return [Change("knobs.kv_cache_memory_bytes", None)]
    share = settings.knobs.gpu_memory_utilization
    more = _share(round((share + DEFAULT_UTILIZATION) / 2, 2)) if share and share < DEFAULT_UTILIZATION else []
    return [*no_draft(figures, settings), *_smaller_batches(figures, settings), *more]


def _kv_bytes(gib: float) -> Change:
    """A change to this size, in whole MiB."""
    return Change("knobs.kv_cache_memory_bytes", math.ceil(gib * 1024) * 1024**2)


def room_for_one_request(figures: Figures, settings: EngineSettings) -> Changes:
    shorter = _whole(figures, "fits", "max_model_len")
    needed = _number(figures, "needed")
    if needed is not None and _number(figures, "kv_set") is not None:
        # On a CPU the cache's size is set, and is no share of the memory.
        return [*shorter, _kv_bytes(needed * KV_MARGIN)]
    return [*shorter, *room_for_kv(figures, settings)]


def largest_context(figures: Figures, settings: EngineSettings) -> Changes:
    """The log may mean the draft's context, whose limit is a field of the speculation."""
    limit = _number(figures, "limit")
    drafting = settings.speculation.model_dump().get("max_model_len")
    if limit is not None and drafting is not None and drafting == figures.get("asked"):
        return [Change("speculation.max_model_len", int(limit))]
    return _whole(figures, "limit", "max_model_len")


def mapped_vocabulary(figures: Figures, settings: EngineSettings) -> Changes:
    """Padding alone may make the sizes differ: then the drafts' tokens can be mapped."""
    mapped = [Change("speculation.use_heterogeneous_vocab", True)]
    return [*(mapped if isinstance(settings.speculation, DraftModel) else []), Change("speculation", "off")]


def other_draft(figures: Figures, settings: EngineSettings) -> Changes:
    """Only a person can choose another draft."""
    return no_speculation(figures, settings)


def divisible_drafts(figures: Figures, settings: EngineSettings) -> Changes:
    """As many drafted tokens as the drafter's heads, or the next smaller multiple of them."""
    tokens, step = _number(figures, "tokens"), _number(figures, "step")
    if not tokens or not step:
        return []
    return [Change("speculation.num_speculative_tokens", max(int(step), int(tokens // step * step)))]


def by_stage(figures: Figures, settings: EngineSettings) -> Changes:
    """Depends on what took the last memory: weights, the profiling run's activations, CUDA graphs, or requests."""
    stage = figures.get("stage")
    at = stage.message_id.removeprefix("stage.") if isinstance(stage, Message) else ""
    lower = _share(round(_gpu_share(figures, settings) - GPU_MARGIN, 2))
    if at in ("profiling", "compiling"):
        return [*_smaller_batches(figures, settings), *no_draft(figures, settings)]
    if at in ("allocating_kv", "warming_up"):
        return [
            *lower,
            Change("knobs.enforce_eager", True),
            *_halved(figures, settings, "max_num_seqs", LEAST_SEQS),
        ]
    if at in ("serving", "answering"):
        return [*lower, *_smaller_batches(figures, settings)]
    if at == "unseen":
        return [*lower, *_smaller_batches(figures, settings), *no_draft(figures, settings)]
    return no_draft(figures, settings)


def fewer_sequences(figures: Figures, settings: EngineSettings) -> Changes:
    fewer = _halved({"max_num_seqs": figures.get("seqs")}, settings, "max_num_seqs", LEAST_SEQS)
    return [*fewer, *_share(round(_gpu_share(figures, settings) - GPU_MARGIN, 2))]


def less_memory(figures: Figures, settings: EngineSettings) -> Changes:
    """Take less of the machine's memory: the KV cache if its size is set, a draft, or half of each weight."""
    size = settings.knobs.kv_cache_memory_bytes
    smaller = [Change("knobs.kv_cache_memory_bytes", size // 2)] if size and size > 1 else []
    halved = [Change("knobs.dtype", "bfloat16")] if settings.knobs.dtype == "float32" else []
    return [*smaller, *no_draft(figures, settings), *halved]


def less_offloading(figures: Figures, settings: EngineSettings) -> Changes:
    """What is offloaded to the machine's memory is pinned there."""
    return [Change("knobs.kv_offloading_size", None)] if settings.knobs.kv_offloading_size else []


def kv_that_fits(figures: Figures, settings: EngineSettings) -> Changes:
    """Half of the free memory: this engine and another one need some of it too."""
    free = _number(figures, "free")
    return [_kv_bytes(free / 2)] if free else []


def one_part(figures: Figures, settings: EngineSettings) -> Changes:
    knobs = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    return [Change(f"knobs.{knob}", None) for knob in knobs]


def without_gpu(figures: Figures, settings: EngineSettings) -> Changes:
    """Compute the same drafts on the processor instead of the GPU."""
    same = [Change("speculation.method", "ngram")] if settings.speculation.method == "ngram_gpu" else []
    return [*same, *no_speculation(figures, settings)]


def without_suffix(figures: Figures, settings: EngineSettings) -> Changes:
    return no_speculation(figures, settings) if settings.speculation.needs_arctic else []


def available_gpus(figures: Figures, settings: EngineSettings) -> Changes:
    """Use all available GPUs for one copy of the model."""
    rest = [Change(f"knobs.{knob}", None) for knob in ("pipeline_parallel_size", "data_parallel_size")]
    return [*_whole(figures, "available", "tensor_parallel_size"), *rest]


def dividing_heads(figures: Figures, settings: EngineSettings) -> Changes:
    """The largest smaller number of parts that the heads divide into."""
    heads, size = _number(figures, "heads"), _number(figures, "size")
    if heads is None or size is None or size < 2:
        return []
    fits = max(part for part in range(1, int(size)) if int(heads) % part == 0)
    return [Change("knobs.tensor_parallel_size", fits)]


def fewer_parts(figures: Figures, settings: EngineSettings) -> Changes:
    """A tensor_parallel_size that divides the size, or half as many parts where the log does not say the size."""
    parts = settings.knobs.tensor_parallel_size or 1
    if _number(figures, "heads") is not None and _number(figures, "size") == parts:
        return dividing_heads(figures, settings)
    return _halved(figures, settings, "tensor_parallel_size", 1)


def other_kernels(figures: Figures, settings: EngineSettings) -> Changes:
    """What chooses the kernel, back to what vLLM chooses for the card."""
    return [Change("knobs.attention_backend", None), Change("knobs.block_size", None)]


def without_fp8(figures: Figures, settings: EngineSettings) -> Changes:
    changes = [*back_to_default("kv_cache_dtype")(figures, settings)]
    if (settings.knobs.quantization or "").startswith("fp8"):
        changes += back_to_default("quantization")(figures, settings)
    return changes


def without_compiling(figures: Figures, settings: EngineSettings) -> Changes:
    """FlashInfer builds its kernels as it starts; so does torch.compile."""
    return [*back_to_default("attention_backend")(figures, settings), Change("knobs.enforce_eager", True)]


def named_fields(figures: Figures, settings: EngineSettings) -> Changes:
    """The fields that vLLM refused, back to its own choice; a number that was too small, as small as it may be."""
    fields, least = str(figures.get("fields", "")).split(), _number(figures, "least")
    changes = list[Change]()
    for name in (FIELD_NAMES.get(field, field) for field in fields):
        section = "knobs" if name in Knobs.model_fields else "speculation"
        changes.append(Change(f"{section}.{name}", int(least) if least is not None else None))
    speculative = str(figures.get("model", "")) == "SpeculativeConfig"
    return [*changes, *(no_speculation(figures, settings) if speculative else [])]


def supported_dtype(figures: Figures, settings: EngineSettings) -> Changes:
    listed = [text.strip().removeprefix("torch.") for text in str(figures.get("supported", "")).split(",")]
    offered = [Change("knobs.dtype", dtype) for dtype in listed if dtype in ("float32", "float16", "bfloat16")]
    return [*offered, *back_to_default("quantization")(figures, settings)]


def batch_of(figure: str) -> Rule:
    """A batch with room for the largest thing that has to be in one."""
    return lambda figures, settings: _whole(figures, figure, "max_num_batched_tokens")


def seqs_of(figure: str) -> Rule:
    return lambda figures, settings: _whole(figures, figure, "max_num_seqs")


def full_prefill(figures: Figures, settings: EngineSettings) -> Changes:
    return [
        *_whole(figures, "length", "max_num_batched_tokens"),
        Change("knobs.enable_chunked_prefill", None),
    ]


def matching_batch(figures: Figures, settings: EngineSettings) -> Changes:
    return [*_whole(figures, "seqs", "max_num_batched_tokens"), *_whole(figures, "tokens", "max_num_seqs")]


def without_argument(figures: Figures, settings: EngineSettings) -> Changes:
    """Reset the knob that the refused option came from."""
    knob = str(figures.get("flag")).removeprefix("--").replace("-", "_")
    return [Change(f"knobs.{knob}", None)]


def without_slow_stages(figures: Figures, settings: EngineSettings) -> Changes:
    """Skip compiling and graph capture, which take longest."""
    stage = figures.get("stage")
    slow = isinstance(stage, Message) and stage.message_id in ("stage.compiling", "stage.warming_up")
    return [Change("knobs.enforce_eager", True)] if slow else []


def without_missing_draft(figures: Figures, settings: EngineSettings) -> Changes:
    return no_draft(figures, settings) if figures.get("name") == settings.draft != settings.target else []


def shorter_sequence(figures: Figures, settings: EngineSettings) -> Changes:
    """The longest sequence, in steps of 256 tokens, for which there is room."""
    tokens, sequence, room = (_number(figures, name) for name in ("tokens", "sequence", "room"))
    length = int(tokens * room / sequence) // 256 * 256 if tokens and sequence and room else 0
    return [*([Change("knobs.max_model_len", length)] if length else []), *no_draft(figures, settings)]
