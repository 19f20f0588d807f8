"""Speculation methods: one class for each, with its fields and all that depends on the method."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from playground.domain.validation import choices, refused

from .fields import Count, Frozen, ModelName, PositiveInt, Word

MOST_K = 128


class _Method(Frozen):
    """The interface of every method, with its defaults."""

    # Whether the target's own layers draft.
    target_layers: ClassVar[bool] = False
    # Whether the runtime must have arctic-inference.
    needs_arctic: ClassVar[bool] = False

    @property
    def needs_gpu(self) -> bool:
        """Whether vLLM fails at its start on a CPU."""
        return False

    @property
    def draft(self) -> str | None:
        """The draft model's name; None where there is none."""
        return None

    def config(self, draft: str | None) -> dict[str, object]:
        """The JSON of --speculative-config: only what was set. `draft`: where the engine finds it."""
        fields = self.model_dump(exclude_none=True, mode="json")
        return fields if draft is None else {**fields, "model": draft}

    @classmethod
    def as_vllm_reads(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Fields of a --speculative-config for this method, with vLLM's defaults where they are not ours."""
        return fields


class SpeculationOff(_Method):
    """Plain decoding: one token per sequence and step."""

    method: Literal["off"] = "off"


class _Speculating(_Method):
    """The fields of every method that speculates (of vLLM's --speculative-config)."""

    num_speculative_tokens: Annotated[int, Field(ge=1, le=MOST_K)] = 5
    num_speculative_tokens_per_batch_size: tuple[tuple[Count, Count, Count], ...] | None = None
    rejection_sample_method: Literal["standard", "synthetic", "block"] | None = None
    synthetic_acceptance_rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = None
    synthetic_acceptance_length: Annotated[float, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _synthetic_needs_its_method(self) -> _Speculating:
        synthetic = self.synthetic_acceptance_rates is not None or self.synthetic_acceptance_length is not None
        if synthetic != (self.rejection_sample_method == "synthetic"):
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

    @property
    def draft(self) -> str:
        return self.model


class _Parallel(_Drafting):
    """A draft that may write its k tokens in one pass, if it was trained to."""

    parallel_drafting: bool | None = None


class DraftModel(_Parallel):
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

    @property
    def needs_gpu(self) -> bool:
        return self.method == "ngram_gpu"

    @classmethod
    def as_vllm_reads(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Fill in the lengths: each defaults to the other, and both to 5."""
        low, high = fields.get("prompt_lookup_min"), fields.get("prompt_lookup_max")
        return {**fields, "prompt_lookup_min": low or high or 5, "prompt_lookup_max": high or low or 5}


class Suffix(_Speculating):
    """Drafts from a suffix tree over the prompt and earlier answers (needs arctic-inference)."""

    method: Literal["suffix"] = "suffix"
    suffix_decoding_max_tree_depth: PositiveInt | None = None
    suffix_decoding_max_cached_requests: Count | None = None
    suffix_decoding_max_spec_factor: Annotated[float, Field(gt=0)] | None = None
    suffix_decoding_min_token_prob: Annotated[float, Field(ge=0, le=1)] | None = None

    needs_arctic: ClassVar[bool] = True

    @property
    def needs_gpu(self) -> bool:
        return True


class Eagle(_Parallel):
    """A small head that reads the target's hidden states."""

    method: Literal["eagle", "eagle3"] = "eagle3"


class BlockDraft(_Drafting):
    """A head that reads the target's hidden states and writes its k tokens in one pass."""

    method: Literal["dflash", "dspark"] = "dflash"

    @property
    def needs_gpu(self) -> bool:
        return self.method == "dspark"


class Mtp(_Speculating):
    """The target's own multi-token-prediction layers."""

    method: Literal["mtp"] = "mtp"

    target_layers: ClassVar[bool] = True


Speculation = Annotated[
    SpeculationOff | DraftModel | Ngram | Suffix | Eagle | BlockDraft | Mtp, Field(discriminator="method")
]
# Method -> its class, in the order in which a form offers them.
SPECULATION_METHODS: dict[str, type[_Method]] = {
    method: model for model in get_args(get_args(Speculation)[0]) for method in choices(model, "method") or ()
}
