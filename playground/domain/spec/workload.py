"""What is sent: prompts, sampling parameters, how many at once, and the figure that decides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from playground.domain.refusal import refused

from .settings import MOST, Frozen, PositiveInt

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
    # What the history can hold: 64 bits.
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
        """How it is to be answered: its own length goes before the common one."""
        return sampling if self.max_tokens is None else sampling.model_copy(update={"max_tokens": self.max_tokens})


class Limits(Frozen):
    """What a request must keep to for goodput to count it. None: not limited."""

    ttft_ms: Annotated[float, Field(gt=0)] | None = None
    tpot_ms: Annotated[float, Field(gt=0)] | None = None
    e2el_ms: Annotated[float, Field(gt=0)] | None = None

    @property
    def given(self) -> bool:
        return any(limit is not None for _, limit in self)


Concurrency = Annotated[int, Field(ge=1, le=4096)]


class _Ending(Frozen):
    """When a profile stops sending: after so many requests or seconds, whichever comes first.

    What is under way then still runs to its end: half an answer would bias every figure.
    """

    requests: PositiveInt | None = None
    duration_s: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _ends(self) -> _Ending:
        if self.requests is None and self.duration_s is None:
            raise refused("accepted.ending", "requests")
        return self


class ConcurrencyProfile(_Ending):
    """So many requests at any time: the next leaves as soon as one has ended."""

    kind: Literal["concurrency"] = "concurrency"
    concurrency: Concurrency = 1

    @property
    def peak(self) -> int:
        """The most requests that can be under way at once."""
        return self.concurrency


class RateProfile(_Ending):
    """Requests leave at a rate, evenly or at random; one that is due while `concurrency` run waits its turn."""

    kind: Literal["rate"] = "rate"
    requests_per_s: Annotated[float, Field(gt=0)]
    arrivals: Literal["constant", "poisson"] = "poisson"
    concurrency: Concurrency = 256

    @property
    def peak(self) -> int:
        return self.concurrency


class WavesProfile(_Ending):
    """Static batching: so many at once, and the next wave only when the last request of this one has ended."""

    kind: Literal["waves"] = "waves"
    concurrency: Concurrency

    @property
    def peak(self) -> int:
        return self.concurrency


class RampProfile(_Ending):
    """Concurrency that goes from `first` to `last`, evenly over the requests."""

    kind: Literal["ramp"] = "ramp"
    first: Concurrency = 1
    last: Concurrency

    @model_validator(mode="after")
    def _is_over_requests(self) -> RampProfile:
        if self.requests is None:
            raise refused("accepted.ramp", "requests")
        return self

    @property
    def peak(self) -> int:
        return max(self.first, self.last)


LoadProfile = Annotated[ConcurrencyProfile | RateProfile | WavesProfile | RampProfile, Field(discriminator="kind")]
