"""One request as it happened: its chunks with their arrival times.

Times are milliseconds since the request was sent; `sent_ms` counts from its trial's start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from playground.domain.message import Message
from playground.domain.spec.workload import Conversation


@dataclass(frozen=True, slots=True)
class Chunk:
    """One token-bearing piece of a streamed answer.

    `tokens` is None where the endpoint gives no count on the way; `token_ids` is None where it gives no ids.
    """

    ms: float
    tokens: int | None
    text: str
    token_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class StepArrays:
    """The engine's own account of one request's verification steps, in order.

    Steps in which nothing was drafted are absent. Accepted counts include tokens past a stop.
    """

    accepted: tuple[int, ...]
    drafted: tuple[int, ...]


@dataclass(slots=True)
class RequestTrace:
    """One request as it happened. `output_tokens` and `prompt_tokens` are the endpoint's own final usage."""

    conversation: Conversation
    sent_ms: float = 0.0
    chunks: list[Chunk] = field(default_factory=list)
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    steps: StepArrays | None = None
    problem: Message | None = None
    ended: bool = False

    @property
    def output_text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks)

    @property
    def token_ids(self) -> list[int] | None:
        """All token ids, or None if any chunk came without them."""
        ids: list[int] = []
        for chunk in self.chunks:
            if chunk.token_ids is None:
                return None
            ids.extend(chunk.token_ids)
        return ids

    @property
    def counted_tokens(self) -> int | None:
        """Tokens that arrived, by chunk counts; else the final usage; else None."""
        counts = [chunk.tokens for chunk in self.chunks]
        if None in counts:
            return self.output_tokens
        return sum(count for count in counts if count is not None)
