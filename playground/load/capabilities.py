"""Probes what an attached endpoint can do, by a request for two tokens."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from math import inf
from typing import Any

import httpx

from playground.domain.errors import WorkFailed
from playground.domain.limits import MOST
from playground.domain.spec.workload import ChatMessage, Sampling

from .answer.body import Body
from .answer.sse import StreamError, payload
from .answer.stream import as_count
from .endpoint import Capabilities, Endpoint, TooLarge
from .rate_limit import FIRST_S, seconds_of

TIMEOUT_S = 120.0
QUESTION = (ChatMessage(role="user", content="Say hello."),)
NONE = Capabilities(
    token_ids=False,
    running_usage=False,
    usage=False,
    cache_salt=False,
    ignore_eos=False,
    refused=("temperature", "seed"),
)
REFUSED = (400, 422)

# What an endpoint may know, by name -> the fields that it adds to a request.
Extras = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class _Answer:
    status: int
    events: list[dict[str, Any]]
    text: str = ""

    @property
    def cached_tokens(self) -> int | None:
        """How much of the prompt came from the prefix cache; None where the endpoint does not say."""
        usages = [usage for event in self.events for usage in _tables([event.get("usage")])]
        details = _tables([usage.get("prompt_tokens_details") for usage in usages])
        return next((as_count(detail.get("cached_tokens")) for detail in reversed(details) if detail), None)

    @property
    def choices(self) -> list[dict[str, Any]]:
        return [choice for event in self.events for choice in _tables(event.get("choices"))]


def _tables(values: object) -> list[dict[str, Any]]:
    """The tables of a list: what an endpoint sends may have any shape."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


async def probe(endpoint: Endpoint, sampling: Sampling | None = None) -> Capabilities:
    """What the endpoint knows, and which parameters of `sampling` it refuses.

    Raises WorkFailed if the endpoint can't be reached, or refuses even a plain request.
    """
    async with endpoint.client(TIMEOUT_S) as client:
        requests = _Requests(client, endpoint, _parameters(sampling or Sampling()))
        try:
            accepted, answer = await requests.accepted()
            salts = "cache_salt" in accepted and not await requests.ignores_salt(accepted, answer)
            max_model_len = await _max_model_len(client, endpoint.model)
        except TooLarge as error:
            raise WorkFailed("stream.answer_too_large", detail=str(error)) from error
        except TimeoutError as error:
            raise WorkFailed("stream.unfinished", detail=f"{TIMEOUT_S:g}") from error
        except httpx.HTTPError as error:
            raise WorkFailed("stream.connect", detail=str(error) or type(error).__name__) from error
    counted = [event for event in answer.events if event.get("usage")]
    return Capabilities(
        token_ids=any(choice.get("token_ids") for choice in answer.choices),
        running_usage=any(event.get("choices") for event in counted) and len(counted) > 1,
        usage="usage" in accepted,
        cache_salt=salts,
        ignore_eos="ignore_eos" in accepted,
        refused=tuple(name for name in requests.parameters if name not in accepted),
        max_model_len=max_model_len,
    )


def _parameters(sampling: Sampling) -> Extras:
    parameters = sampling.model_dump(exclude_none=True, exclude={"max_tokens", "ignore_eos"})
    return {name: {name: value} for name, value in parameters.items() if value != ()}


@dataclass(frozen=True)
class _Requests:
    """Sends small requests with more or fewer extras: strict servers refuse a whole request for one field."""

    client: httpx.AsyncClient
    endpoint: Endpoint
    parameters: Extras

    def _extras(self) -> Extras:
        return {
            **self.parameters,
            "usage": {"stream_options": {"include_usage": True}},
            "running_usage": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            "token_ids": {"return_token_ids": True},
            "cache_salt": {"cache_salt": uuid.uuid4().hex},
            "ignore_eos": {"ignore_eos": True},
        }

    async def accepted(self) -> tuple[set[str], _Answer]:
        """The extras that are not refused, and an answer to a request with all of those."""
        names = set(self._extras())
        answer = await self._send(names)
        if answer.status not in REFUSED:
            return names, _checked(answer)
        _checked(await self._send(set()))
        names = {name for name in self._extras() if (await self._send({name})).status not in REFUSED}
        return names, _checked(await self._send(names))

    async def ignores_salt(self, accepted: set[str], answer: _Answer) -> bool:
        """Whether another salt still gets the same question from the prefix cache, where the endpoint says so."""
        return answer.cached_tokens is not None and bool(_checked(await self._send(accepted)).cached_tokens)

    async def _send(self, names: set[str]) -> _Answer:
        body = self.endpoint.knowing(NONE).body(QUESTION, Sampling(max_tokens=2))
        for name, extra in self._extras().items():
            if name in names:
                body |= extra
        # The client's own timeout only bounds its silence.
        async with asyncio.timeout(TIMEOUT_S):
            response = await self.client.post(self.endpoint.path, json=body)
            while response.status_code == httpx.codes.TOO_MANY_REQUESTS:
                said = seconds_of(response.headers.get("retry-after", ""))
                await asyncio.sleep(FIRST_S if said is None else said)
                response = await self.client.post(self.endpoint.path, json=body)
        if response.status_code != 200:
            return _Answer(response.status_code, [], self.endpoint.without_key(response.text)[:300])
        return _Answer(200, _events(response.content, self.endpoint))


def _checked(answer: _Answer) -> _Answer:
    if answer.status != 200:
        raise WorkFailed("stream.http", detail=f"HTTP {answer.status}: {answer.text}")
    return answer


def _events(content: bytes, endpoint: Endpoint) -> list[dict[str, Any]]:
    """What can be read of the answer; the requests themselves tell what can't. Raises WorkFailed where nothing
    can."""
    body, events, problem = Body(inf, MOST), list[dict[str, Any]](), None
    for data in (*body.feed(content), *body.end()):
        try:
            events.append(payload(data) or {})
        except StreamError as error:
            problem = error
    if problem is not None and not events:
        raise WorkFailed(f"stream.{problem.kind}", detail=endpoint.without_key(problem.detail)) from problem
    return events


async def _max_model_len(client: httpx.AsyncClient, model: str) -> int | None:
    """The model's context by /v1/models; None where the endpoint does not report it."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            response = await client.get("/models")
        entries = response.json()["data"] if response.status_code == 200 else []
        lengths = [entry.get("max_model_len") for entry in entries if entry.get("id") == model]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return lengths[0] if lengths and isinstance(lengths[0], int) else None
