"""Drives an endpoint that already runs, without engines or history: `python -m playground load`."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from playground import prompts
from playground.config import Config
from playground.domain.errors import InvalidInput, WorkFailed
from playground.domain.limit_checks import check_prompts, requests_of
from playground.domain.limits import Limits
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.workload import ChatMessage, Prompt, Sampling
from playground.load.capabilities import probe
from playground.load.driver_client import MeasuredLoad
from playground.load.endpoint import Endpoint
from playground.processes import exit_code_text
from playground.prompts import PromptSet

PROMPT = "Tell a long story about the keeper of a lighthouse and the sea."
SEED = 0


@dataclass(frozen=True)
class LoadTest:
    """The results of one load test."""

    endpoint: Endpoint
    profile: LoadProfile
    traces: list[RequestTrace]
    client_cpu_s: float | None
    wall_s: float | None

    @property
    def answered(self) -> bool:
        return any(trace.problem is None for trace in self.traces)


def prompts_for(text: str | None, file: str | None, limits: Limits) -> PromptSet:
    """One prompt, or those of a file (or a built-in set). Raises InvalidInput for what is above the limits."""
    if file is not None:
        return prompts.load_set(file, limits, SEED)
    if text is not None and not text.strip():
        raise InvalidInput("load.empty_prompt")
    single = Prompt(conversation=(ChatMessage(role="user", content=text or PROMPT),))
    check_prompts(limits, [single])
    return PromptSet((single,))


def sampling_for(output_tokens: int | None) -> Sampling:
    """With a number of output tokens, requests generate exactly that many: the end-of-sequence token is
    ignored."""
    return Sampling() if output_tokens is None else Sampling(max_tokens=output_tokens, ignore_eos=True)


async def drive(
    endpoint: Endpoint, workload: Sequence[Prompt], sampling: Sampling, profile: LoadProfile, config: Config
) -> LoadTest:
    """Probe the endpoint, then send the profile's requests. SIGINT and SIGTERM end it; what arrived is kept.

    Raises InvalidInput for what is above the host's limits.
    """
    limits, requests = config.limits, requests_of(profile)
    limits.check("run_requests", requests)
    limits.check("output_tokens", sampling.max_tokens)
    limits.check("trial_output_tokens", requests * sampling.max_tokens)
    endpoint = endpoint.knowing(await probe(endpoint, sampling))
    longest = endpoint.capabilities.max_model_len
    tokens = max(prompt.sampled(sampling).max_tokens for prompt in workload)
    if longest is not None and tokens >= longest:
        raise InvalidInput("load.too_long", tokens=tokens, longest=longest)
    load = MeasuredLoad(
        endpoint, workload, sampling, profile, SEED, config.request_timeout_s, limits=config.limits
    )
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, load.stop)
    try:
        async for _ in load.run():
            pass
    except subprocess.CalledProcessError as error:
        raise WorkFailed("load.driver_died", code=exit_code_text(error.returncode)) from error
    driven = LoadTest(endpoint, profile, load.in_order, load.client_cpu_s, load.wall_s)
    if not driven.traces:
        raise WorkFailed("load.nothing_sent")
    return driven
