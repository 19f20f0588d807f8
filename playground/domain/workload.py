"""What is sent: prompts, sampling parameters, and the figure that decides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .settings import Frozen, PositiveInt

Objective = Literal["tpot", "ttft", "throughput"]


class Message(Frozen):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


Conversation = tuple[Message, ...]


class Sampling(Frozen):
    """Sampling parameters of the OpenAI API and vLLM's extensions. None: the engine's default."""

    max_tokens: PositiveInt = 256
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0)] | None = None
    seed: int | None = 0
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
            raise ValueError("the prompt is empty")
        return self

    @property
    def conversation(self) -> Conversation:
        """All turns in order, the system prompt first."""
        first = (Message(role="system", content=self.system),) if self.system else ()
        return (*first, *self.turns, Message(role="user", content=self.prompt))
