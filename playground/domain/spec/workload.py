"""Workloads: prompts, sampling parameters, and the figure that decides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from playground.domain.spec.fields import MOST, Frozen, PositiveInt
from playground.domain.validation import refused

Objective = Literal["tpot", "ttft", "throughput", "goodput"]


class ChatMessage(Frozen):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


Conversation = tuple[ChatMessage, ...]


class Sampling(Frozen):
    """Sampling parameters of the OpenAI API and vLLM's extensions. None: the engine's default."""

    max_tokens: PositiveInt = 256
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=MOST)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0)] | None = None
    # The history stores 64-bit integers.
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False


class Workload(Frozen):
    """One conversation for a race: an optional system prompt, earlier turns, and the prompt itself."""

    prompt: Annotated[str, Field(min_length=1)]
    system: str | None = None
    turns: Conversation = ()
    sampling: Sampling = Sampling()
    objective: Objective = "tpot"

    @model_validator(mode="after")
    def _prompt_is_not_blank(self) -> Workload:
        if not self.prompt.strip():
            raise refused("accepted.prompt", "prompt")
        return self

    @property
    def conversation(self) -> Conversation:
        """All turns in order, the system prompt first."""
        first = (ChatMessage(role="system", content=self.system),) if self.system else ()
        return (*first, *self.turns, ChatMessage(role="user", content=self.prompt))


class Prompt(Frozen):
    """One conversation to send, the user's turn last. `max_tokens` None: the sampling's own."""

    conversation: Annotated[Conversation, Field(min_length=1)]
    max_tokens: PositiveInt | None = None

    def sampled(self, sampling: Sampling) -> Sampling:
        """The sampling of this prompt: its own length replaces the common one."""
        return sampling if self.max_tokens is None else sampling.model_copy(update={"max_tokens": self.max_tokens})


class Limits(Frozen):
    """The limits of the requests that goodput counts. None: not limited."""

    ttft_ms: Annotated[float, Field(gt=0)] | None = None
    tpot_ms: Annotated[float, Field(gt=0)] | None = None
    e2el_ms: Annotated[float, Field(gt=0)] | None = None

    @property
    def is_set(self) -> bool:
        """Whether any of them is set."""
        return any(limit is not None for _, limit in self)
