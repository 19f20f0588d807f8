"""What an attached endpoint can do, found out once by asking it for two tokens."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

import httpx

from ..domain.errors import WorkFailed
from ..domain.workload import Message, Sampling
from .endpoint import Capabilities, Endpoint

TIMEOUT_S = 120.0
QUESTION = (Message(role="user", content="Say hello."),)
NONE = Capabilities(token_ids=False, running_usage=False, usage=False, cache_salt=False, ignore_eos=False)
# What each capability adds to a request. Strict servers refuse a whole request for one field they don't know.
EXTRAS: dict[str, dict[str, Any]] = {
    "usage": {"stream_options": {"include_usage": True}},
    "running_usage": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    "token_ids": {"return_token_ids": True},
    "cache_salt": {"cache_salt": uuid.uuid4().hex},
    "ignore_eos": {"ignore_eos": True},
}
REFUSED = (400, 422)


@dataclass(frozen=True)
class _Answer:
    status: int
    payloads: list[dict[str, Any]]
    text: str = ""


async def probe(endpoint: Endpoint) -> Capabilities:
    """Raises WorkFailed if the endpoint can't be reached, or refuses even a plain request."""
    # A connection each: a server may close one without a word.
    transport = httpx.AsyncHTTPTransport(uds=endpoint.uds, limits=httpx.Limits(max_keepalive_connections=0))
    headers = dict(endpoint.headers)
    # The driver knows no proxies either: what is probed is what will be measured.
    async with httpx.AsyncClient(
        base_url=endpoint.url, transport=transport, headers=headers, timeout=TIMEOUT_S, trust_env=False
    ) as client:
        try:
            accepted, answer = await _accepted(client, endpoint)
            max_model_len = await _max_model_len(client, endpoint.model)
        except httpx.HTTPError as error:
            raise WorkFailed("stream.connect", detail=str(error) or type(error).__name__) from error
    choices = [choice for payload in answer.payloads for choice in payload.get("choices") or ()]
    counted = [payload for payload in answer.payloads if payload.get("usage")]
    return Capabilities(
        token_ids=any(choice.get("token_ids") for choice in choices),
        running_usage=any(payload.get("choices") for payload in counted) and len(counted) > 1,
        usage="usage" in accepted,
        cache_salt="cache_salt" in accepted,
        ignore_eos="ignore_eos" in accepted,
        max_model_len=max_model_len,
    )


async def _accepted(client: httpx.AsyncClient, endpoint: Endpoint) -> tuple[set[str], _Answer]:
    """The extras that are not refused, and an answer to a request with all of those."""
    answer = await _ask(client, endpoint, set(EXTRAS))
    if answer.status not in REFUSED:
        return set(EXTRAS), _good(answer)
    _good(await _ask(client, endpoint, set()))
    accepted = {name for name in EXTRAS if (await _ask(client, endpoint, {name})).status not in REFUSED}
    return accepted, _good(await _ask(client, endpoint, accepted))


def _good(answer: _Answer) -> _Answer:
    if answer.status != 200:
        raise WorkFailed("stream.http", detail=f"HTTP {answer.status}: {answer.text}")
    return answer


async def _ask(client: httpx.AsyncClient, endpoint: Endpoint, extras: set[str]) -> _Answer:
    body = endpoint.knowing(NONE).body(QUESTION, Sampling(max_tokens=2))
    for name in EXTRAS:
        if name in extras:
            body |= EXTRAS[name]
    async with client.stream("POST", endpoint.path, json=body) as response:
        if response.status_code != 200:
            return _Answer(response.status_code, [], (await response.aread())[:300].decode(errors="replace"))
        lines = [line async for line in response.aiter_lines()]
    data = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    try:
        payloads = [json.loads(item) for item in data if item and item != "[DONE]"]
    except ValueError as error:
        raise WorkFailed("stream.malformed", detail=str(error)) from error
    return _Answer(200, [payload for payload in payloads if isinstance(payload, dict)])


async def _max_model_len(client: httpx.AsyncClient, model: str) -> int | None:
    """What /v1/models says about this model, where there is such a page and it says it."""
    try:
        response = await client.get("/models")
        entries = response.json()["data"] if response.status_code == 200 else []
        lengths = [entry.get("max_model_len") for entry in entries if entry.get("id") == model]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return lengths[0] if lengths and isinstance(lengths[0], int) else None
