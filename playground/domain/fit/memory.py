"""How much of its device's memory one engine needs, and how much is left for the KV cache.

All sizes are bytes on one GPU (on a CPU: of the whole engine). The formulas follow vLLM's source (0.26 to 0.32:
`config/vllm.py` for CUDA graphs, `v1/kv_cache_interface.py` for the KV cache, `engine/arg_utils.py` for defaults);
the allowances were fitted to what vLLM 0.26 reported on an H200 and are checked against it in the tests.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram

from .card import Capability
from .kv_cache import kv_bytes, kv_element_bytes
from .shape import FLOAT_BYTES, ModelShape
from .weights import Tensor, weight_bytes

KIB, MIB, GIB = 1024, 1024**2, 1024**3
# vLLM's own default of --gpu-memory-utilization.
DEFAULT_UTILIZATION = 0.92
# The share of a card for all engines on it together: that default less what a second context takes.
SHARED_UTILIZATION = 0.9
# Memory outside of torch's allocator: reported as 0.22 to 0.24 GiB on the H200.
NON_TORCH_BYTES = 256 * MIB
# What one captured CUDA graph takes for each layer of the target: 0.19 to 0.21 GiB for 30 graphs of 28 layers,
# 0.65 for 89.
GRAPH_LAYER_BYTES = 256 * KIB
# Communication buffers of tensor parallelism; an allowance that was not measured here.
PARALLEL_BYTES = 512 * MIB
# A CUDA context, which vLLM's own account leaves out.
CONTEXT_BYTES = 512 * MIB
# The three processes of an engine on a CPU without a model: resident memory of vLLM 0.32's.
CPU_PROCESS_BYTES = 1792 * MIB
# What a CPU engine's worker holds beyond weights, packed copies and activations: mostly holes in the heap, since
# oneDNN's packed matrices are allocated before the plain ones are freed (blocks above 32 MiB leave none, so that a
# larger model has no more of them). Resident memory of vLLM 0.32's worker with SmolLM2-135M in float32, less its
# weights and activations: 50 MB with kernels for AVX-512 and for AVX2, on 2 threads and on 16; 142 MB on a
# processor with AVX2 only. This is in between: all in all within 15% of each.
CPU_HEAP_BYTES = 96 * MIB
# The compiler of n-gram drafts, and the holes that it leaves: 138 and 231 MB more on the same two machines.
CPU_NGRAM_BYTES = 160 * MIB
MAX_GRAPH_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Device:
    """Where an engine runs. `free_bytes` is now; `kv_space_bytes`: what a CPU engine gets for its KV cache;
    `capability`: a GPU's compute capability, where it is known."""

    kind: Literal["cpu", "cuda"]
    name: str
    total_bytes: int
    free_bytes: int
    kv_space_bytes: int = 0
    capability: Capability | None = None

    @property
    def batch(self) -> tuple[int, int]:
        """vLLM's defaults of max_num_batched_tokens and max_num_seqs there."""
        if self.kind == "cpu":
            return 2048, 128
        if self.total_bytes >= 160 * GIB:
            return 16384, 1024
        if self.total_bytes >= 70 * GIB and "a100" not in self.name.lower():
            return 8192, 1024
        return 2048, 256


@dataclass(frozen=True, slots=True)
class Model:
    """A model as far as it can be known without its weights. `tensors` None: only its shape is known."""

    shape: ModelShape
    tensors: tuple[Tensor, ...] | None = None

    @property
    def exact(self) -> bool:
        """Whether its size is certain: by the files' headers, or by a shape whose layers are all counted."""
        by_shape = self.shape.counted and self.shape.quantization is None
        return self.shape.understood and not self.shape.multimodal and (self.tensors is not None or by_shape)

    @property
    def parameters(self) -> int:
        """How many weights it has; of a quantized model by its shape, since headers count packed numbers."""
        if self.tensors is None or self.shape.quantization is not None:
            return self.shape.parameters
        return weight_bytes(self.shape, self.tensors, dtype="bfloat16") // 2


@dataclass(frozen=True, slots=True)
class Need:
    """The memory that an engine needs.

    `kv_sequence` is the KV cache of one sequence of `length` tokens; `kv_least` the smallest cache that it works
    with: that, or more where its size is set. `budget` is what it may take in all; `kv_available` what is left of
    it for the KV cache, negative where the rest alone is too much. `claim` must be free when it starts, or vLLM
    refuses.
    """

    weights: int
    draft_weights: int
    activations: int
    cuda_graphs: int
    other: int
    length: int
    kv_per_token: int
    kv_sequence: int
    kv_least: int
    kv_available: int
    budget: int
    claim: int

    @property
    def fixed(self) -> int:
        """Everything but the KV cache."""
        return self.weights + self.draft_weights + self.activations + self.cuda_graphs + self.other

    @property
    def total(self) -> int:
        """The least that it can work with."""
        return self.fixed + self.kv_least

    @property
    def reserved(self) -> int:
        """What it occupies once it has started: the KV cache is allocated whole."""
        return self.fixed + max(self.kv_available, 0)

    @property
    def sequences(self) -> int:
        """How many sequences of the full length fit at once."""
        return max(self.kv_available, 0) // self.kv_sequence

    @property
    def fits(self) -> bool:
        return self.sequences >= 1 and self.reserved <= self.budget


def need(settings: EngineSettings, target: Model, draft: Model | None, device: Device) -> Need | None:
    """None where the length of a sequence is unknown. `settings` are those that the engine gets: they already
    contain the defaults that depend on the device (dtype) or on the other sides (utilization)."""
    knobs = settings.knobs
    length = full_length(settings, target.shape)
    if length is None:
        return None
    dtype = engine_dtype(settings, target.shape)
    split = (knobs.tensor_parallel_size or 1) * (knobs.pipeline_parallel_size or 1)
    mtp = settings.speculation.target_layers
    weights = weight_bytes(target.shape, target.tensors, dtype=dtype, quantization=knobs.quantization, mtp=mtp)
    draft_weights = _draft_weights(settings, draft, dtype)
    other = NON_TORCH_BYTES + (PARALLEL_BYTES if split > 1 else 0)
    if device.kind == "cpu":
        weights += _packed_head(target.shape, dtype)
        draft_weights += _packed_head(draft.shape, dtype) if draft else 0
        other = CPU_PROCESS_BYTES + CPU_HEAP_BYTES
        other += CPU_NGRAM_BYTES if isinstance(settings.speculation, Ngram) else 0
    fixed = {
        "weights": weights // split,
        "draft_weights": draft_weights,
        "activations": _activations(settings, target.shape, device, dtype),
        "cuda_graphs": _cuda_graphs(settings, target.shape, device),
        "other": other,
    }

    def kv(tokens: int) -> int:
        return _kv_of_all(settings, target.shape, draft, device, tokens)

    budget, available = _left(settings, device, sum(fixed.values()))
    if knobs.max_model_len == "auto" and kv(1) <= available < kv(length):
        # vLLM takes the longest that there is room for.
        length = bisect_right(range(length), available, key=kv) - 1
    kv_sequence = kv(length)
    utilized = int(device.total_bytes * (knobs.gpu_memory_utilization or DEFAULT_UTILIZATION))
    return Need(
        **fixed,
        length=length,
        kv_per_token=kv(1),
        kv_sequence=kv_sequence,
        kv_least=max(kv_sequence, _granted(settings, device) or 0),
        kv_available=available,
        budget=budget,
        claim=utilized if device.kind == "cuda" else sum(fixed.values()) + available,
    )


def full_length(settings: EngineSettings, shape: ModelShape) -> int | None:
    """Tokens of the longest sequence; never more than the model was made for, which vLLM refuses. Where the length
    is not set, or follows from the room, the longest that it can be."""
    requested = settings.knobs.max_model_len
    if not isinstance(requested, int):
        return shape.usual_context
    lengths = [length for length in (requested, shape.context) if length is not None]
    return min(lengths, default=None)


def engine_dtype(settings: EngineSettings, shape: ModelShape) -> str:
    """The engine's dtype. `auto` is the model's, or bfloat16 for one that is stored in float32, as in vLLM."""
    dtype = settings.knobs.dtype
    if dtype is not None and dtype != "auto":
        return dtype
    return "bfloat16" if shape.dtype == "float32" else shape.dtype


def graph_sizes(most: int) -> list[int]:
    """The batch sizes, in tokens, that vLLM captures up to `most`."""
    return [
        *(size for size in (1, 2, 4) if size <= most),
        *range(8, min(most + 1, 256), 8),
        *range(256, most + 1, 16),
    ]


def batch_of(settings: EngineSettings, device: Device) -> tuple[int, int]:
    """max_num_batched_tokens and max_num_seqs as the engine will have them."""
    tokens, seqs = device.batch
    seqs = settings.knobs.max_num_seqs or seqs
    return settings.knobs.max_num_batched_tokens or max(tokens, seqs), seqs


def _drafts(settings: EngineSettings) -> int:
    return int(getattr(settings.speculation, "num_speculative_tokens", 0))


def _kv_of_all(
    settings: EngineSettings, shape: ModelShape, draft: Model | None, device: Device, length: int
) -> int:
    """The KV cache of target, draft and the target's own layers that draft."""
    dtype, tp = engine_dtype(settings, shape), settings.knobs.tensor_parallel_size or 1
    element = kv_element_bytes(settings.knobs.kv_cache_dtype, dtype)
    batched, _ = batch_of(settings, device)
    target_kv = -(
        -kv_bytes(shape, length, element, batched=batched, tp=tp) // (settings.knobs.pipeline_parallel_size or 1)
    )
    if settings.speculation.target_layers:
        target_kv += target_kv * shape.mtp_layers // shape.layers
    if draft is None:
        return target_kv
    draft_cache_dtype = getattr(settings.speculation, "kv_cache_dtype", None) or settings.knobs.kv_cache_dtype
    draft_tp = getattr(settings.speculation, "draft_tensor_parallel_size", None) or tp
    return target_kv + kv_bytes(
        draft.shape, length, kv_element_bytes(draft_cache_dtype, dtype), batched=batched, tp=draft_tp
    )


def _draft_weights(settings: EngineSettings, draft: Model | None, dtype: str) -> int:
    """The draft's part on one GPU, in the target's precision; all of it where the draft is not split."""
    if draft is None:
        return 0
    parts = getattr(settings.speculation, "draft_tensor_parallel_size", None)
    quantization = getattr(settings.speculation, "quantization", None)
    whole = weight_bytes(draft.shape, draft.tensors, dtype=dtype, quantization=quantization)
    return whole // (parts or settings.knobs.tensor_parallel_size or 1)


def _packed_head(shape: ModelShape, dtype: str) -> int:
    """On a CPU vLLM keeps a second, packed copy of the output embeddings (dispatch_cpu_unquantized_gemm)."""
    return shape.vocabulary * shape.hidden * FLOAT_BYTES[dtype]


def _activations(settings: EngineSettings, shape: ModelShape, device: Device, dtype: str) -> int:
    """The peak of a step: in the MLP (gate, up, their product, and four hidden states for each token), or in the
    head (logits as they come, as float32, and as probabilities)."""
    tokens, seqs = batch_of(settings, device)
    size, tp = FLOAT_BYTES[dtype], settings.knobs.tensor_parallel_size or 1
    forward = tokens * (3 * shape.widest // tp + 4 * shape.hidden) * size
    return max(forward, seqs * shape.vocabulary * (size + 8))


def _cuda_graphs(settings: EngineSettings, shape: ModelShape, device: Device) -> int:
    """One graph for each batch size that mixes prefill, one more for each that only decodes."""
    if device.kind == "cpu" or settings.knobs.enforce_eager:
        return 0
    _, seqs = batch_of(settings, device)
    decode = seqs * (1 + _drafts(settings))
    mixed = min(2 * decode, MAX_GRAPH_TOKENS)
    graphs = len(graph_sizes(mixed)) + len(graph_sizes(min(decode, mixed)))
    return graphs * shape.layers * GRAPH_LAYER_BYTES


def _granted(settings: EngineSettings, device: Device) -> int | None:
    """The KV cache's size where it is set; None where the cache gets what is left."""
    return settings.knobs.kv_cache_memory_bytes or (device.kv_space_bytes if device.kind == "cpu" else None)


def _left(settings: EngineSettings, device: Device, fixed: int) -> tuple[int, int]:
    """The engine's budget, and what of it the KV cache gets."""
    if (granted := _granted(settings, device)) is not None:
        return device.total_bytes, granted
    budget = int(device.total_bytes * (settings.knobs.gpu_memory_utilization or DEFAULT_UTILIZATION))
    return budget, budget - fixed
