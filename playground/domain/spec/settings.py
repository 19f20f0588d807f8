"""What defines one engine: runtime, target, speculation, knobs, extra flags. Frozen, hashable, comparable.

Names are vLLM's own. None always means "the engine's own default" and is never sent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from playground.domain.url import BaseUrl
from playground.domain.validation import refused

# What 64 bits hold: no setting of an engine is larger.
MOST = 2**63 - 1
MOST_K = 128
PositiveInt = Annotated[int, Field(ge=1, le=MOST)]
Count = Annotated[int, Field(ge=0, le=MOST)]
# One of vLLM's own words, which differ from version to version.
Word = Annotated[str, Field(max_length=200)]
# What file systems allow, in bytes.
LONGEST_PART = 255


def _names_a_file(name: str) -> str:
    if any(len(part.encode()) > LONGEST_PART for part in name.split("/")):
        raise refused("accepted.shorter_part", None, limit=LONGEST_PART)
    return name


# A folder, a hub id, or a name in the models folder.
ModelName = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f]+$"), AfterValidator(_names_a_file)
]


def _allows(annotation: object, kind: type) -> bool:
    return annotation is kind or any(_allows(one, kind) for one in get_args(annotation))


class Frozen(BaseModel):
    """Validated when made, then immutable; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, values: Any) -> Any:
        """pydantic would take true for 1."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            if isinstance(value, bool) and field and not _allows(field.annotation, bool):
                raise refused("accepted.no_truth_value", name, value=str(value).lower())
        return values


class SpeculationOff(Frozen):
    """Plain decoding: one token per sequence and step."""

    method: Literal["off"] = "off"


class _Speculating(Frozen):
    """What every speculation method shares (fields of vLLM's --speculative-config)."""

    num_speculative_tokens: Annotated[int, Field(ge=1, le=MOST_K)] = 5
    num_speculative_tokens_per_batch_size: tuple[tuple[Count, Count, Count], ...] | None = None
    rejection_sample_method: Literal["standard", "synthetic", "block"] | None = None
    synthetic_acceptance_rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = None
    synthetic_acceptance_length: Annotated[float, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _synthetic_needs_its_method(self) -> _Speculating:
        given = self.synthetic_acceptance_rates is not None or self.synthetic_acceptance_length is not None
        if given != (self.rejection_sample_method == "synthetic"):
            raise refused("accepted.synthetic", "rejection_sample_method")
        return self


class _Drafting(_Speculating):
    """A method that runs a second model."""

    model: ModelName
    draft_tensor_parallel_size: PositiveInt | None = None
    max_model_len: PositiveInt | None = None
    quantization: Word | None = None
    kv_cache_dtype: Word | None = None
    attention_backend: Word | None = None
    draft_sample_method: Literal["greedy", "probabilistic"] | None = None


class DraftModel(_Drafting):
    """A smaller model of the same family proposes k tokens; the target verifies them in one step."""

    method: Literal["draft_model"] = "draft_model"
    use_heterogeneous_vocab: bool | None = None


class Ngram(_Speculating):
    """The continuation of the last match of the final n tokens in the sequence so far is the draft."""

    method: Literal["ngram", "ngram_gpu"] = "ngram"
    prompt_lookup_max: PositiveInt = 5
    prompt_lookup_min: PositiveInt = 2

    @model_validator(mode="after")
    def _min_below_max(self) -> Ngram:
        if self.prompt_lookup_min > self.prompt_lookup_max:
            raise refused(
                "accepted.lookup", "prompt_lookup_min", low=self.prompt_lookup_min, high=self.prompt_lookup_max
            )
        return self


class Suffix(_Speculating):
    """Drafts from a suffix tree over the prompt and earlier answers (needs arctic-inference)."""

    method: Literal["suffix"] = "suffix"
    suffix_decoding_max_tree_depth: PositiveInt | None = None
    suffix_decoding_max_cached_requests: Count | None = None
    suffix_decoding_max_spec_factor: Annotated[float, Field(gt=0)] | None = None
    suffix_decoding_min_token_prob: Annotated[float, Field(ge=0, le=1)] | None = None


class Eagle(_Drafting):
    """A small head that reads the target's hidden states."""

    method: Literal["eagle", "eagle3"] = "eagle3"


class Mtp(_Speculating):
    """The target's own multi-token-prediction layers."""

    method: Literal["mtp"] = "mtp"


Speculation = Annotated[SpeculationOff | DraftModel | Ngram | Suffix | Eagle | Mtp, Field(discriminator="method")]


class Knobs(Frozen):
    """The engine's own settings. None: the engine's default."""

    # Batching and scheduling
    max_num_seqs: PositiveInt | None = None
    max_num_batched_tokens: PositiveInt | None = None
    max_model_len: PositiveInt | None = None
    enable_chunked_prefill: bool | None = None
    long_prefill_token_threshold: Count | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    # KV cache
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    kv_cache_memory_bytes: PositiveInt | None = None
    kv_cache_dtype: Word | None = None
    kv_offloading_size: Annotated[float, Field(gt=0)] | None = None
    block_size: PositiveInt | None = None
    enable_prefix_caching: bool | None = None
    # Model and numerics
    dtype: Literal["auto", "float32", "float16", "bfloat16"] | None = None
    quantization: Word | None = None
    load_format: Word | None = None
    seed: Count | None = None
    enforce_eager: bool | None = None
    attention_backend: Word | None = None
    # Parallelism
    tensor_parallel_size: PositiveInt | None = None
    pipeline_parallel_size: PositiveInt | None = None
    data_parallel_size: PositiveInt | None = None
    distributed_executor_backend: Literal["ray", "mp", "uni", "external_launcher"] | None = None

    def overrides(self) -> dict[str, int | float | bool | str]:
        """The knobs that were set, by name."""
        return self.model_dump(exclude_none=True)


class EngineSettings(Frozen):
    """Everything that defines one engine.

    `runtime` names one of the host's runtimes; `target` is a folder, a hub id or a name in the models folder.
    `trust_remote_code` and `extra_flags` are refused unless the host's configuration allows them.
    """

    runtime: Word = "default"
    target: ModelName
    speculation: Speculation = SpeculationOff()
    knobs: Knobs = Knobs()
    trust_remote_code: bool = False
    extra_flags: tuple[Annotated[str, Field(max_length=20_000)], ...] = ()

    @property
    def draft(self) -> str | None:
        """The draft model's name, or None where the method runs no second model."""
        return self.speculation.model if isinstance(self.speculation, _Drafting) else None

    @property
    def speculates(self) -> bool:
        return self.speculation.method != "off"

    @property
    def synthetic(self) -> bool:
        """Whether the engine accepts drafts as it is told, whatever they are: real speed, text without meaning."""
        return self.speculation.model_dump().get("rejection_sample_method") == "synthetic"

    @property
    def gpus(self) -> int:
        """How many GPUs this engine takes."""
        knobs = self.knobs
        return (
            (knobs.tensor_parallel_size or 1)
            * (knobs.pipeline_parallel_size or 1)
            * (knobs.data_parallel_size or 1)
        )


Api = Literal["chat", "completions"]


class AttachedEndpoint(Frozen):
    """A side that somebody else runs: an OpenAI-compatible endpoint. Its key is the host's affair, never kept
    here."""

    base_url: str
    model: ModelName
    api: Api = "chat"

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, text: str) -> str:
        return str(BaseUrl.parse(text).api)

    @property
    def url(self) -> BaseUrl:
        return BaseUrl.parse(self.base_url)

    @property
    def target(self) -> str:
        """What an engine calls its target: the model's name there."""
        return self.model

    @property
    def draft(self) -> None:
        """Nobody knows."""
        return None

    @property
    def speculates(self) -> None:
        """Nobody knows."""
        return None

    @property
    def synthetic(self) -> bool:
        """Asked for on an engine's command line, so not here."""
        return False


def _kind(settings: object) -> str:
    attached = "base_url" in settings if isinstance(settings, dict) else isinstance(settings, AttachedEndpoint)
    return (AttachedEndpoint if attached else EngineSettings).__name__


# What stands behind a side.
SideSettings = Annotated[
    Annotated[EngineSettings, Tag("EngineSettings")] | Annotated[AttachedEndpoint, Tag("AttachedEndpoint")],
    Discriminator(_kind),
]

SPECULATION_METHODS: dict[str, type[Frozen]] = {
    "off": SpeculationOff,
    "draft_model": DraftModel,
    "ngram": Ngram,
    "ngram_gpu": Ngram,
    "suffix": Suffix,
    "eagle": Eagle,
    "eagle3": Eagle,
    "mtp": Mtp,
}
