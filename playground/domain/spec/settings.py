"""What defines one engine: runtime, target, speculation, knobs, extra flags. Frozen, hashable, comparable.

Names are vLLM's own. None always means "the engine's own default" and is never sent.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    field_validator,
)

from playground.domain.url import BaseUrl

from .fields import NO_NUL, Cards, Count, Frozen, ModelLength, ModelName, PositiveInt, Word
from .speculation import Speculation, SpeculationOff

# Knobs that are no options of vLLM's command line: switches in its environment, "0" or "1".
VARIABLES = {"use_v2_model_runner": "VLLM_USE_V2_MODEL_RUNNER"}
# What says where on this machine the engine runs, and means nothing on another.
CARDS = "cuda_visible_devices"


class Knobs(Frozen):
    """The engine's own settings. None: the engine's default."""

    # Batching and scheduling
    max_num_seqs: PositiveInt | None = None
    max_num_batched_tokens: PositiveInt | None = None
    max_model_len: ModelLength | None = None
    enable_chunked_prefill: bool | None = None
    long_prefill_token_threshold: Count | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    async_scheduling: bool | None = None
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
    use_v2_model_runner: bool | None = None
    # Parallelism
    tensor_parallel_size: PositiveInt | None = None
    pipeline_parallel_size: PositiveInt | None = None
    data_parallel_size: PositiveInt | None = None
    distributed_executor_backend: Literal["ray", "mp", "uni", "external_launcher"] | None = None
    # The GPUs to take, by their numbers, as in "0,1".
    cuda_visible_devices: Cards | None = None

    def overrides(self) -> dict[str, int | float | bool | str]:
        """The knobs that were set, by name."""
        return self.model_dump(exclude_none=True)

    @property
    def options(self) -> dict[str, int | float | bool | str]:
        """Those of them that are options of vLLM's command line."""
        return {name: value for name, value in self.overrides().items() if name not in (*VARIABLES, CARDS)}

    @property
    def variables(self) -> dict[str, str]:
        """Those of them that vLLM reads from its environment alone, as its variables."""
        return {VARIABLES[name]: str(int(value)) for name, value in self.overrides().items() if name in VARIABLES}


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
    extra_flags: tuple[Annotated[str, Field(max_length=20_000, pattern=NO_NUL)], ...] = ()

    @property
    def draft(self) -> str | None:
        """The draft model's name, or None where the method runs no second model."""
        return self.speculation.draft

    @property
    def speculates(self) -> bool | None:
        """None: an extra flag has a speculation that the settings have no place for."""
        if self.speculation.method != "off":
            return True
        return None if any(re.match("--speculative[-_]config|-sc", flag) for flag in self.extra_flags) else False

    @property
    def synthetic(self) -> bool:
        """Whether the engine accepts drafts at a prescribed rate: the speed is real, the text has no meaning."""
        return self.speculation.model_dump().get("rejection_sample_method") == "synthetic"

    @property
    def cards(self) -> tuple[int, ...]:
        """The GPUs that it names; empty: any."""
        named = self.knobs.cuda_visible_devices
        return tuple(map(int, named.split(","))) if named else ()

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
    """A side that this host does not run: an OpenAI-compatible endpoint. Its key is in the host's configuration,
    never here."""

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
        """The model's name at the endpoint, in the place of an engine's target."""
        return self.model

    @property
    def draft(self) -> None:
        """None: an endpoint does not tell."""
        return None

    @property
    def speculates(self) -> None:
        """None: an endpoint does not tell."""
        return None

    @property
    def synthetic(self) -> bool:
        """False: synthetic acceptance is set on an engine's command line."""
        return False


def _kind(settings: object) -> str:
    attached = "base_url" in settings if isinstance(settings, dict) else isinstance(settings, AttachedEndpoint)
    return (AttachedEndpoint if attached else EngineSettings).__name__


# A side's engine or endpoint.
SideSettings = Annotated[
    Annotated[EngineSettings, Tag("EngineSettings")] | Annotated[AttachedEndpoint, Tag("AttachedEndpoint")],
    Discriminator(_kind),
]
