"""An endpoint that already runs, driven without the rest: what `python -m playground load` does."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass

from .domain.errors import InvalidInput, WorkFailed
from .domain.records import RequestTrace
from .domain.workload import LoadProfile, Message, Prompt, Sampling
from .load.capabilities import probe
from .load.client import MeasuredLoad
from .load.endpoint import Endpoint

PROMPT = "Tell a long story about the keeper of a lighthouse and the sea."
SEED = 0


@dataclass(frozen=True)
class Driven:
    """What one load left behind."""

    endpoint: Endpoint
    profile: LoadProfile
    traces: list[RequestTrace]
    client_cpu_s: float | None
    wall_s: float | None

    @property
    def answered(self) -> bool:
        return any(trace.problem is None for trace in self.traces)


def prompt_for(text: str | None, output_tokens: int | None) -> Prompt:
    """With a number of output tokens, exactly so many are asked for: the answer's own end is ignored."""
    if text is not None and not text.strip():
        raise InvalidInput("load.empty_prompt")
    sampling = Sampling() if output_tokens is None else Sampling(max_tokens=output_tokens, ignore_eos=True)
    return Prompt(conversation=(Message(role="user", content=text or PROMPT),), sampling=sampling)


async def drive(endpoint: Endpoint, prompt: Prompt, profile: LoadProfile, idle_timeout_s: float) -> Driven:
    """Probe the endpoint, then send the profile's requests. SIGINT and SIGTERM end it; what arrived is kept."""
    endpoint = endpoint.knowing(await probe(endpoint, prompt.sampling))
    longest = endpoint.capabilities.max_model_len
    if longest is not None and prompt.sampling.max_tokens >= longest:
        raise InvalidInput("load.too_long", tokens=prompt.sampling.max_tokens, longest=longest)
    load = MeasuredLoad(endpoint, [prompt], profile, SEED, idle_timeout_s)
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, load.stop)
    async for _ in load.run():
        pass
    driven = Driven(endpoint, profile, load.in_order, load.client_cpu_s, load.wall_s)
    if not driven.traces:
        raise WorkFailed("load.nothing_sent")
    return driven
