"""What the engine reports about itself: counters and gauges of its /metrics page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
from prometheus_client.parser import text_string_to_metric_families

from playground.domain.record.counters import Counters

# Field of Counters -> sample name. Samples of several engine ranks are summed.
SAMPLES = {
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "kv_cache_usage": "vllm:kv_cache_usage_perc",
    "drafts": "vllm:spec_decode_num_drafts_total",
    "draft_tokens": "vllm:spec_decode_num_draft_tokens_total",
    "accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
    "accepted_per_position": "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "preemptions": "vllm:num_preemptions_total",
    "prefix_cache_queries": "vllm:prefix_cache_queries_total",
    "prefix_cache_hits": "vllm:prefix_cache_hits_total",
}
TIMEOUT_S = 5


def parse(page: str, samples: Mapping[str, str] = SAMPLES) -> Counters:
    """The counters of a page, by their names there; None for what it lacks."""
    names, per_position = tuple(samples.values()), samples.get("accepted_per_position")
    lines = [line for line in page.splitlines() if line.startswith(names)]
    sums: dict[str, float] = {}
    positions: dict[int, float] = {}
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            if sample.name == per_position:
                position = int(sample.labels["position"])
                positions[position] = positions.get(position, 0) + sample.value
            else:
                sums[sample.name] = sums.get(sample.name, 0) + sample.value
    numbers = {field: sums[name] for field, name in samples.items() if name in sums}
    whole = {field: int(value) for field, value in numbers.items() if field != "kv_cache_usage"}
    return Counters(
        **whole,
        kv_cache_usage=numbers.get("kv_cache_usage"),
        accepted_per_position=tuple(int(positions[i]) for i in sorted(positions)) or None,
    )


async def read_page(client: httpx.AsyncClient) -> str | None:
    """The page now; None if the engine does not answer: a figure is then unknown, and the run goes on."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            response = await client.get("/metrics", timeout=TIMEOUT_S)
        response.raise_for_status()
    except (httpx.HTTPError, TimeoutError):
        return None
    return response.text


async def read_counters(client: httpx.AsyncClient, samples: Mapping[str, str] = SAMPLES) -> Counters | None:
    """Counters now; None if the engine does not answer."""
    page = await read_page(client)
    return None if page is None else parse(page, samples)
