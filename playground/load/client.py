"""Asks the driver to run a plan and turns its events back into traces."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..domain.records import Chunk, Problem, RequestTrace, StepArrays
from ..domain.workload import Conversation, Sampling
from ..processes import DriverProcess


@dataclass(frozen=True)
class Endpoint:
    """Where a side's engine answers. `uds` wins over host and port."""

    model: str
    uds: str | None = None
    host: str | None = None
    port: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def for_plan(self) -> dict[str, Any]:
        return {
            "uds": self.uds,
            "host": self.host,
            "port": self.port,
            "path": "/v1/chat/completions",
            "headers": dict(self.headers),
        }


def chat_body(
    model: str, conversation: Conversation, sampling: Sampling, *, salted: bool = True
) -> dict[str, Any]:
    """The request's JSON body: streaming, with token ids, running usage, and its own prefix-cache salt.

    Without the salt, a prompt that the engine has seen before is served from its prefix cache.
    """
    parameters = sampling.model_dump(exclude_none=True)
    if not parameters["stop"]:
        del parameters["stop"]
    return {
        "model": model,
        "messages": [message.model_dump() for message in conversation],
        **parameters,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
        **({"cache_salt": uuid.uuid4().hex} if salted else {}),
    }


class Load:
    """One plan under way: one request to each endpoint, all at once."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        conversation: Conversation,
        sampling: Sampling,
        idle_timeout_s: float,
        *,
        salted: bool = True,
    ) -> None:
        self.traces = [RequestTrace(conversation) for _ in endpoints]
        self._plan = {
            "endpoints": [endpoint.for_plan() for endpoint in endpoints],
            "requests": [
                {"endpoint": index, "body": chat_body(endpoint.model, conversation, sampling, salted=salted)}
                for index, endpoint in enumerate(endpoints)
            ],
            "idle_timeout_s": idle_timeout_s,
        }
        self._driver: DriverProcess | None = None
        self._stopped = False

    async def run(self) -> AsyncGenerator[int, None]:
        """Yield the index of a trace each time it has grown; `traces[i].ended` tells its end."""
        self._driver = await DriverProcess.start(self._plan)
        try:
            if self._stopped:
                self._driver.stop()
            async for event in self._driver.events():
                yield self._apply(event)
        finally:
            await self._driver.close()

    def stop(self) -> None:
        """End all streams; what arrived stays."""
        self._stopped = True
        if self._driver is not None:
            self._driver.stop()

    def _apply(self, event: dict[str, Any]) -> int:
        index = int(event["request"])
        trace = self.traces[index]
        match event["event"]:
            case "sent":
                trace.sent_ms = event["at"]
            case "chunk":
                ids = event["token_ids"]
                trace.chunks.append(
                    Chunk(event["ms"], event["tokens"], event["text"], tuple(ids) if ids else None)
                )
            case "end":
                trace.finish_reason = event["finish_reason"]
                trace.prompt_tokens = event["prompt_tokens"]
                trace.output_tokens = event["output_tokens"]
                trace.steps = _steps(event["speculation"])
                if event["problem"]:
                    kind, detail = event["problem"]["kind"], event["problem"]["detail"]
                    trace.problem = Problem(f"stream.{kind}", {"detail": detail})
                trace.ended = True
        return index


def _steps(speculation: dict[str, Any] | None) -> StepArrays | None:
    """The per-step arrays of the engine's detailed per-request metrics, where it sent them."""
    if not speculation:
        return None
    if not speculation.get("num_spec_steps"):
        return StepArrays((), ())
    if "per_step_accepted" not in speculation:
        return None
    return StepArrays(tuple(speculation["per_step_accepted"]), tuple(speculation["per_step_drafted"]))
