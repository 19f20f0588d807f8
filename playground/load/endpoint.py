"""Where an engine answers, what it understands, and the request bodies that follow from that."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import httpx

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.limits import DEFAULTS
from playground.domain.spec.settings import Api
from playground.domain.spec.workload import Conversation, Sampling
from playground.domain.url import BaseUrl, without_secrets

# Up to so many characters of a key may stay in a text: they reveal nothing.
CUT_KEY = 4
# In an answer, a shorter key is not looked for.
SHORTEST_SECRET = 8
PATHS: dict[Api, str] = {"chat": "/chat/completions", "completions": "/completions"}


@dataclass(frozen=True)
class Capabilities:
    """What an endpoint does beyond the OpenAI API's core. vLLM does all of it, so all is the default.

    `token_ids` and `running_usage` were seen in an answer. The others were accepted, which is all one can see,
    unless the endpoint reported that a salt changed nothing. `refused` names sampling parameters.
    """

    token_ids: bool = True
    running_usage: bool = True
    usage: bool = True
    cache_salt: bool = True
    ignore_eos: bool = True
    refused: tuple[str, ...] = ()
    max_model_len: int | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what it does not know or refuses."""
        named = ("token_ids", "running_usage", "usage", "cache_salt", "ignore_eos")
        return (*(name for name in named if not getattr(self, name)), *self.refused)


@dataclass(frozen=True)
class Endpoint:
    """Where a side's engine answers. `uds` takes precedence over host and port. Headers may hold a key."""

    model: str
    uds: str | None = None
    host: str | None = None
    port: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    api: Api = "chat"
    tls: bool = False
    base_path: str = "/v1"
    capabilities: Capabilities = Capabilities()

    @classmethod
    def from_url(cls, base_url: str, model: str, *, api: Api = "chat", key: str | None = None) -> Endpoint:
        """`base_url` with or without /v1. Raises InvalidInput for what is no http(s) address."""
        url = _address(base_url)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return cls(model, host=url.host, port=url.port, headers=headers, api=api, tls=url.tls, base_path=url.path)

    @classmethod
    def attached(cls, config: Config, base_url: str, model: str, api: Api, key: str | None = None) -> Endpoint:
        """An endpoint that this host does not run, with the host's key for it, else `key`.

        Raises InvalidInput for what is no address, or none that this host allows.
        """
        url = _address(base_url)
        if config.serves_others and not config.endpoints:
            raise InvalidInput("endpoint.none_allowed")
        if config.endpoints and not any(allowed.covers(url) for allowed in config.endpoints):
            allowed = ", ".join(str(allowed) for allowed in config.endpoints)
            raise InvalidInput("endpoint.not_allowed", url=str(url), allowed=allowed)
        return cls.from_url(base_url, model, api=api, key=config.endpoint_key(url) or key)

    @property
    def url(self) -> str:
        """The base URL as a person would type it; for an engine on a Unix socket the host is localhost."""
        return str(self._where)

    @property
    def _where(self) -> BaseUrl:
        if self.uds is not None or self.host is None or self.port is None:
            return BaseUrl(False, "localhost", 80, self.base_path)
        return BaseUrl(self.tls, self.host, self.port, self.base_path)

    def without_key(self, text: str) -> str:
        """`text` without this endpoint's key: some servers repeat a key that they refuse."""
        return "".join(_without(self._keys, [text], ended=True))

    def keyless(self, pieces: Sequence[str], *, ended: bool = True) -> list[str]:
        """The pieces of an answer without this endpoint's key, also where it is spread over several; of an answer
        that has ended, without the beginning of a key at its end. A short key may be a word, and stays."""
        return _without([key for key in self._keys if len(key) >= SHORTEST_SECRET], pieces, ended)

    @property
    def _keys(self) -> list[str]:
        return [value.removeprefix("Bearer ") for value in self.headers.values()]

    def as_curl(self, body: Mapping[str, Any]) -> str:
        """The request as a curl command, in which an environment variable stands for the key."""
        key = ' --header "Authorization: Bearer $OPENAI_API_KEY"' if self.headers else ""
        content = shlex.quote(json.dumps(body, ensure_ascii=False))
        return f"curl --no-buffer{key} {shlex.quote(self.url + self.path)} --json {content}"

    def client(self, timeout_s: float, at_once: int | None = None) -> httpx.AsyncClient:
        """A client for requests beside the measuring process, at most `at_once` at a time. Each opens a
        connection, since a server may close an idle one without notice. Like the driver it uses no proxies. An
        answer above the limit of `response_bytes` raises TooLarge."""
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=0)
        return httpx.AsyncClient(
            base_url=self.url,
            transport=_Bounded(uds=self.uds, limits=limits, verify=self.tls),
            headers={**self.headers, "Accept-Encoding": "identity"},
            timeout=httpx.Timeout(timeout_s, pool=None),
            trust_env=False,
        )

    @property
    def path(self) -> str:
        """Where requests go, under the base URL."""
        return PATHS[self.api]

    def knowing(self, capabilities: Capabilities) -> Endpoint:
        return replace(self, capabilities=capabilities)

    def for_plan(self) -> dict[str, Any]:
        return {
            "uds": self.uds,
            "host": self.host,
            "port": self.port,
            "tls": self.tls,
            "path": self.base_path + self.path,
            "headers": {"Host": self._where.netloc, **self.headers},
        }

    def body(self, conversation: Conversation, sampling: Sampling) -> dict[str, Any]:
        """The request's JSON body: streaming, with token ids and running usage where the endpoint has them."""
        known = self.capabilities
        parameters = sampling.model_dump(exclude_none=True)
        if not parameters["stop"]:
            del parameters["stop"]
        for name in (*known.refused, *(() if known.ignore_eos else ("ignore_eos",))):
            parameters.pop(name, None)
        options = {"include_usage": True} if known.usage else {}
        if known.running_usage:
            options["continuous_usage_stats"] = True
        return {
            "model": self.model,
            **self._question(conversation),
            **parameters,
            "stream": True,
            **({"stream_options": options} if options else {}),
            **({"return_token_ids": True} if known.token_ids else {}),
        }

    def _question(self, conversation: Conversation) -> dict[str, Any]:
        if self.api == "chat":
            return {"messages": [message.model_dump() for message in conversation]}
        # Completions have no roles: they get the plain text.
        return {"prompt": "\n\n".join(message.content for message in conversation)}

    def new_salt(self, salted: bool) -> str | None:
        """A prefix-cache salt; without one, a prompt seen before is served from the engine's prefix cache."""
        return uuid.uuid4().hex if salted and self.capabilities.cache_salt else None


class TooLarge(httpx.ReadError):
    """An answer has more bytes than its text says."""


class _Bounded(httpx.AsyncHTTPTransport):
    """Raises TooLarge for an answer of too many bytes, and DecodingError for one that grows when it is read."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx.DecodingError(f"Content-Encoding: {response.headers['Content-Encoding'][:60]}")
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Counted(response.stream)
        return response


class _Counted(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for block in self._stream:
            size += len(block)
            if size > DEFAULTS.response_bytes:
                raise TooLarge(f"{DEFAULTS.response_bytes:,}")
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()


def _without(keys: Sequence[str], pieces: Sequence[str], ended: bool) -> list[str]:
    """The pieces of a text, with an ellipsis for each key in it; if it has ended, without the part of a key at its
    end."""
    whole = "".join(pieces)
    letters = list(whole)
    for key in keys:
        for match in re.finditer(re.escape(key), whole):
            letters[slice(*match.span())] = ["…", *[""] * (len(key) - 1)]
        # A text that is cut short may end within it.
        cut = next((n for n in range(len(key) - 1, CUT_KEY, -1) if ended and whole.endswith(key[:n])), 0)
        letters[len(whole) - cut :] = [""] * cut
    ends = accumulate(map(len, pieces))
    return ["".join(letters[end - len(piece) : end]) for piece, end in zip(pieces, ends, strict=True)]


def _address(base_url: str) -> BaseUrl:
    try:
        return BaseUrl.parse(base_url).api
    except ValueError:
        raise InvalidInput("endpoint.bad_url", url=without_secrets(base_url)) from None
