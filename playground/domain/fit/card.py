"""What a GPU's compute capability rules out, as vLLM 0.32 checks it before it loads a model.

bfloat16: `platforms/cuda.py`; backends: `supports_compute_capability`; quantization: `get_min_capability`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings

from .issue import Changes, FitIssue

# (major, minor), as (8, 9) of an L4.
Capability = tuple[int, int]

BF16: Capability = (8, 0)
FP8: Capability = (8, 9)
FP4: Capability = (10, 0)
# The least that each quantization needs, and attention backends that the user may name.
QUANTIZATION: Mapping[str, Capability] = {
    **dict.fromkeys(("compressed-tensors", "quark", "moe_wna16", "bitsandbytes"), (7, 0)),
    **dict.fromkeys(("gptq",), (6, 0)),
    **dict.fromkeys(("awq", "awq_marlin", "gptq_marlin", "fp8", "fp8_per_tensor", "fp8_per_block"), (7, 5)),
    **dict.fromkeys(("torchao", "modelopt_fp4"), (7, 5)),
    **dict.fromkeys(("modelopt", "mxfp4", "experts_int8", "fbgemm_fp8"), (8, 0)),
}
BACKENDS: Mapping[str, Capability] = {"FLASH_ATTN": (8, 0), "FLASHINFER": (7, 5)}
# Backends of latent attention that run on cards of these major numbers only.
MAJORS: Mapping[str, tuple[int, ...]] = {
    **{"FLASHMLA": (9, 10), "FLASHMLA_SPARSE": (9, 10), "FLASH_ATTN_MLA": (9,)},
    **{"CUTLASS_MLA": (10,), "FLASHINFER_MLA": (10,)},
}
# KiB of shared memory that a block may use (CUDA C Programming Guide, technical specifications).
SHARED_KIB: Mapping[Capability, int] = {
    **{(7, 0): 96, (7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99, (9, 0): 227},
    **{(10, 0): 227, (10, 3): 227, (12, 0): 99, (12, 1): 99},
}


def abilities(capability: Capability) -> str:
    """What the card has, in the terms of its maker: number formats, FlashAttention, shared memory of a block."""
    formats = [name for name, least in (("bfloat16", BF16), ("FP8", FP8), ("FP4", FP4)) if capability >= least]
    attention = {8: "FlashAttention 2", 9: "FlashAttention 2, 3"}.get(capability[0], "")
    shared = f"{SHARED_KIB[capability]} KiB" if capability in SHARED_KIB else ""
    return ", ".join(part for part in (*formats, attention, shared) if part)


def issues(
    settings: EngineSettings, capability: Capability | None, name: str, stored: Iterable[str | None] = ()
) -> list[FitIssue]:
    """What the card called `name` can't do of these settings, and of models that are `stored` quantized so."""
    if capability is None:
        return []
    ruled_out = _issues(settings, capability, name, stored)
    # A flag that is not read may say otherwise.
    return [replace(issue, certain=issue.certain and not settings.extra_flags) for issue in ruled_out]


def allows(settings: EngineSettings, change: Change, capability: Capability | None) -> bool:
    """Whether the change asks nothing of the card that it can't do."""
    before = {issue.problem.message_id for issue in issues(settings, capability, "")}
    after = {issue.problem.message_id for issue in issues(change.apply(settings), capability, "")}
    return after <= before


def weakest(machine: Mapping[str, object]) -> Capability | None:
    """The lowest capability of a stored machine's GPUs; None where it is not recorded."""
    gpus = machine.get("gpus")
    listed = [gpu.get("capability") for gpu in gpus if isinstance(gpu, Mapping)] if isinstance(gpus, list) else []
    parts = [str(text).split(".") for text in listed if text]
    return min(((int(major), int(minor)) for major, minor in parts), default=None)


def _issues(
    settings: EngineSettings, capability: Capability, name: str, stored: Iterable[str | None]
) -> Iterator[FitIssue]:
    knobs = settings.knobs
    if knobs.dtype == "bfloat16" and capability < BF16:
        yield _issue("card_bf16", name, capability, BF16, (Change("knobs.dtype", "float16"),))
    if str(knobs.kv_cache_dtype).startswith("fp8") and capability < FP8:
        # Some kernels convert by themselves, so that it is no certainty.
        back = (Change("knobs.kv_cache_dtype", None),)
        yield _issue("card_fp8_cache", name, capability, FP8, back, certain=False)
    chosen = str(knobs.attention_backend).upper()
    if capability < BACKENDS.get(chosen, capability):
        back = (Change("knobs.attention_backend", None),)
        yield _issue("card_backend", name, capability, BACKENDS[chosen], back, what=chosen)
    if chosen in MAJORS and capability[0] not in MAJORS[chosen]:
        back = (Change("knobs.attention_backend", None),)
        yield _issue("card_backend", name, capability, (min(MAJORS[chosen]), 0), back, what=chosen)
    for method in {str(knobs.quantization), *map(str, stored)}:
        if capability < QUANTIZATION.get(method, capability):
            undone: Changes = (Change("knobs.quantization", None),) if method == knobs.quantization else ()
            yield _issue("card_quantization", name, capability, QUANTIZATION[method], undone, what=method)


def _issue(
    message_id: str,
    name: str,
    capability: Capability,
    least: Capability,
    remedy: Changes,
    *,
    certain: bool = True,
    what: str = "",
) -> FitIssue:
    params: dict[str, object] = {"device": name, "has": _text(capability), "least": _text(least), "what": what}
    problem = Message(f"preflight.{message_id}", params)
    return FitIssue(problem, "blocking" if certain else "warning", certain, (remedy,) if remedy else ())


def _text(capability: Capability) -> str:
    return ".".join(map(str, capability))
