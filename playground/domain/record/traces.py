"""One request as it happened: its chunks with their arrival times.

Times are milliseconds since the request was sent; `sent_ms` counts from its trial's start.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def duration_ms(traces: Sequence[RequestTrace]) -> float | None:
    """First send to last token of one trial, or None if no token arrived."""
    ends = [trace.sent_ms + trace.chunks[-1].ms for trace in traces if trace.chunks]
    if not ends:
        return None
    return max(ends) - min(trace.sent_ms for trace in traces)


def output_tokens(traces: Sequence[RequestTrace]) -> int | None:
    """The output tokens of all of them; None where one of them is not counted, or there is none."""
    # A request that failed before its first token has 0 tokens, not an unknown number.
    counted = [trace.counted_tokens for trace in traces if trace.chunks or not trace.problem]
    return None if None in counted or not counted else sum(count or 0 for count in counted)
