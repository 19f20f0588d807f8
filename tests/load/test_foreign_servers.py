"""Endpoints that are no vLLM: what is found out about them, and that they are measured right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from support.foreign import Foreign, Kind
from support.load_command import command
from support.schema import check

from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.workload import ChatMessage, Prompt, Sampling
from playground.load.capabilities import probe
from playground.load.driver_client import MeasuredLoad
from playground.load.endpoint import Api, Capabilities, Endpoint

pytestmark = pytest.mark.foreign
KINDS: tuple[Kind, ...] = ("llama.cpp", "transformers", "transformers, continuous batching")
TOKENS = 8
QUESTION = "Continue this story. Once upon a time there was a keeper of a lighthouse, who"


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, foreign_server: Callable[[Kind], Foreign]) -> Foreign:
    return foreign_server(request.param)


def whole_answer(server: Foreign, api: Api) -> dict[str, Any]:
    """The same question without streaming: the server's own count of what it said."""
    body: dict[str, Any] = {"model": server.model, "max_tokens": TOKENS, "temperature": 0.0}
    if api == "chat":
        body["messages"] = [{"role": "user", "content": QUESTION}]
    else:
        body["prompt"] = QUESTION
    path = "/v1/chat/completions" if api == "chat" else "/v1/completions"
    answer = httpx.post(server.url + path, json=body, timeout=300, trust_env=False)
    usage: dict[str, Any] = answer.raise_for_status().json()["usage"]
    return usage


async def test_what_it_can_do(server: Foreign) -> None:
    found = await probe(Endpoint.from_url(server.url, server.model), Sampling(top_k=1, top_p=0.9))
    # None counts on the way, all send a usage at the end.
    if server.kind == "llama.cpp":
        # It takes any field. That the salt changed nothing, it tells itself.
        expected = Capabilities(False, False, True, cache_salt=False, ignore_eos=True)
    else:
        expected = Capabilities(False, False, True, cache_salt=False, ignore_eos=False, refused=("top_k",))
    assert found == expected


@pytest.mark.parametrize(("api", "concurrency"), [("chat", 1), ("chat", 4), ("completions", 4)])
async def test_load(server: Foreign, api: Api, concurrency: int) -> None:
    usage = await asyncio.to_thread(whole_answer, server, api)
    assert 1 < usage["completion_tokens"] <= TOKENS
    arguments = (f"--base-url={server.url}", f"--model={server.model}", f"--api={api}", f"--prompt={QUESTION}")
    sizes = (f"--concurrency={concurrency}", "--requests=4", f"--output-tokens={TOKENS}")
    code, out, err = await command(*arguments, *sizes, "--json")
    assert code == 0, err
    document = check("load", json.loads(out))
    figures = document["figures"]
    assert (figures["requests"], figures["errors"]) == (4, {})
    assert figures["output_tokens"] == 4 * usage["completion_tokens"]
    total = figures["output_tokens"] + 4 * usage["prompt_tokens"]
    rate = figures["total_tokens_per_s"] / figures["output_tokens_per_s"]
    assert rate == pytest.approx(total / figures["output_tokens"])
    # Never a gap for what bore no token: roles, finish reasons, usages.
    assert 0 < figures["chunk_gap_ms"]["n"] <= 4 * (usage["completion_tokens"] - 1)
    assert figures["ttft_ms"]["n"] == figures["tpot_ms"]["n"] == figures["e2el_ms"]["n"] == 4
    assert 0 < figures["ttft_ms"]["mean"] < figures["e2el_ms"]["mean"] <= document["wall_s"] * 1000
    assert figures["approximate"]
    unknown = ("itl_ms", "acceptance_rate", "acceptance_rate_per_position", "mean_acceptance_length")
    assert [figures[name] for name in (*unknown, "draft_coverage", "tokens_per_step")] == [None] * 6


async def test_batching_is_what_it_is(server: Foreign) -> None:
    """Four at once are served together, but by the static baseline one after the other."""
    prompt = Prompt(conversation=(ChatMessage(role="user", content=QUESTION),))
    sampling = Sampling(max_tokens=TOKENS)
    endpoint = Endpoint.from_url(server.url, server.model)
    endpoint = endpoint.knowing(await probe(endpoint, sampling))
    load = MeasuredLoad(endpoint, [prompt], sampling, ConcurrencyProfile(concurrency=4, requests=4), 0, 120)
    async for _ in load.run():
        pass
    spans = [(trace.sent_ms + trace.chunks[0].ms, trace.sent_ms + trace.chunks[-1].ms) for trace in load.in_order]
    together = max(first for first, _ in spans) < min(last for _, last in spans)
    assert together == (server.kind != "transformers"), spans


async def test_another_model_is_refused_in_its_own_words(server: Foreign) -> None:
    if server.kind == "llama.cpp":
        # It serves one model and answers to any name.
        assert (await probe(Endpoint.from_url(server.url, "another"))).usage
        return
    code, _, err = await command(f"--base-url={server.url}", "--model=another")
    assert code == 1
    assert "Server is pinned to" in err
