"""Asks the driver to run a plan and turns its events back into traces."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import Any

from playground.domain.limits import DEFAULTS, Limits
from playground.domain.message import Message
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.workload import Conversation, Prompt, Sampling
from playground.processes import DriverProcess

from .answer.stream import as_count
from .endpoint import Endpoint


class _DriverRun:
    """A plan that the driver runs, once: its events, and the way to stop it."""

    def __init__(self, plan: dict[str, Any], cores: Sequence[int] = ()) -> None:
        self._plan = plan
        self._cores = cores
        self._driver: DriverProcess | None = None
        self._stopped = False

    async def _events(self) -> AsyncGenerator[dict[str, Any], None]:
        self._driver = await DriverProcess.start(self._plan, self._cores)
        try:
            if self._stopped:
                self._driver.stop()
            async for event in self._driver.events():
                yield event
        finally:
            await self._driver.close()

    def stop(self) -> None:
        """End all requests under way and send no more; what arrived stays."""
        self._stopped = True
        if self._driver is not None:
            self._driver.stop()


class RaceLoad(_DriverRun):
    """One plan under way: one request to each endpoint, all at once."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        conversation: Conversation,
        sampling: Sampling,
        idle_timeout_s: float,
        *,
        salted: bool = True,
        limits: Limits = DEFAULTS,
    ) -> None:
        self.traces = [RequestTrace(conversation) for _ in endpoints]
        self._endpoints = endpoints
        requests = []
        for index, endpoint in enumerate(endpoints):
            body, salt = endpoint.body(conversation, sampling), endpoint.new_salt(salted)
            requests.append({"endpoint": index, "body": body | ({"cache_salt": salt} if salt else {})})
        super().__init__(
            {
                "mode": "race",
                "endpoints": [endpoint.for_plan() for endpoint in endpoints],
                "requests": requests,
                "idle_timeout_s": idle_timeout_s,
                "limits": asdict(limits),
            }
        )

    async def run(self) -> AsyncGenerator[int, None]:
        """Yield the index of a trace each time it has grown; `traces[i].ended` tells its end."""
        async with aclosing(self._events()) as events:
            async for event in events:
                yield self._apply(event)

    def _apply(self, event: dict[str, Any]) -> int:
        index = int(event["request"])
        trace = self.traces[index]
        match event["event"]:
            case "sent":
                trace.sent_ms = event["at"]
            case "chunk":
                text = event["text"]
                if self._endpoints[index].headers:
                    (text,) = self._endpoints[index].keyless([text], ended=False)
                trace.chunks.append(_chunk(event["ms"], event["tokens"], text, event["token_ids"]))
            case "end":
                _end(trace, event, self._endpoints[index])
        return index


class MeasuredLoad(_DriverRun):
    """A whole workload sent to one endpoint, as a profile says, stamped first and parsed afterwards.

    The same prompts, sampling, profile and seed send the same requests in the same order at the same offsets.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        profile: LoadProfile,
        seed: int,
        idle_timeout_s: float,
        *,
        salted: bool = True,
        limits: Limits = DEFAULTS,
        cores: Sequence[int] = (),
    ) -> None:
        """`cores`: those of the processor that the driver runs on; none: any."""
        self.traces: dict[int, RequestTrace] = {}
        # The chunks of requests whose answers are too long for one event.
        self._parts: defaultdict[int, list[Any]] = defaultdict(list)
        # Set at the first send, and when the last byte has arrived.
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        # CPU time of the driver, from the first send until everything was parsed; None until it has ended.
        self.client_cpu_s: float | None = None
        # From the first send to the last byte.
        self.wall_s: float | None = None
        # How often the endpoint refused a request for its rate limit, which was then sent again.
        self.limited = 0
        self._prompts = prompts
        self._endpoint = endpoint
        super().__init__(
            {
                "mode": "measured",
                "endpoint": endpoint.for_plan(),
                "bodies": [endpoint.body(prompt.conversation, prompt.sampled(sampling)) for prompt in prompts],
                "salt": endpoint.new_salt(salted),
                "pace": asdict(profile.pace),
                "seed": seed,
                "idle_timeout_s": idle_timeout_s,
                "limits": asdict(limits),
            },
            cores,
        )

    async def run(self) -> AsyncGenerator[int, None]:
        """Yield the number of each request when it has ended and its trace is there."""
        async with aclosing(self._events()) as events:
            async for event in events:
                match event["event"]:
                    case "began":
                        self.began.set()
                    case "ended":
                        self.ended.set()
                    case "done":
                        self._finish(event)
                    case "part":
                        self._parts[event["request"]] += event["chunks"]
                    case _:
                        yield self._apply(event)

    @property
    def in_order(self) -> list[RequestTrace]:
        """The traces in the order in which their requests were due."""
        return [self.traces[index] for index in sorted(self.traces)]

    def _apply(self, event: dict[str, Any]) -> int:
        index = int(event["request"])
        trace = RequestTrace(self._prompts[event["prompt"]].conversation, event["at"])
        parts = self._parts.pop(index, [])
        trace.chunks = [_chunk(*item) for item in (*parts, *event["chunks"])]
        _end(trace, event, self._endpoint)
        self.limited += event["limited"]
        self.traces[index] = trace
        return index

    def _finish(self, event: dict[str, Any]) -> None:
        self.client_cpu_s, self.wall_s = event["client_cpu_s"], event["wall_s"]


def _chunk(ms: float, tokens: int | None, text: str, ids: list[int] | None) -> Chunk:
    return Chunk(ms, tokens, text, tuple(ids) if ids else None)


def _end(trace: RequestTrace, event: dict[str, Any], endpoint: Endpoint) -> None:
    trace.finish_reason = endpoint.without_key(event["finish_reason"]) if event["finish_reason"] else None
    if endpoint.headers:
        texts = endpoint.keyless([chunk.text for chunk in trace.chunks])
        trace.chunks = [replace(chunk, text=text) for chunk, text in zip(trace.chunks, texts, strict=True)]
    trace.prompt_tokens = event["prompt_tokens"]
    trace.output_tokens = event["output_tokens"]
    trace.steps = _steps(event["speculation"])
    if event["problem"]:
        kind, detail = event["problem"]["kind"], event["problem"]["detail"]
        trace.problem = Message(f"stream.{kind}", {"detail": endpoint.without_key(detail)})
    trace.ended = True


def _steps(speculation: Any) -> StepArrays | None:
    """The per-step arrays of the engine's detailed per-request metrics, where it sent them and they fit."""
    if not speculation or not isinstance(speculation, dict):
        return None
    if not speculation.get("num_spec_steps"):
        return StepArrays((), ())
    accepted, drafted = (_counts(speculation.get(f"per_step_{name}")) for name in ("accepted", "drafted"))
    if accepted is None or drafted is None or len(accepted) != len(drafted):
        return None
    return StepArrays(accepted, drafted)


def _counts(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, list):
        return None
    counts = tuple(count for value in values if (count := as_count(value)) is not None)
    return counts if len(counts) == len(values) else None
