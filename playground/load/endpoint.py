"""Where an engine answers, what it understands, and the request bodies that follow from that."""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import Api
from playground.domain.spec.workload import Conversation, Sampling
from playground.domain.url import BaseUrl, without_secrets

# Up to so many characters of a key may stay in a text: they reveal nothing.
CUT_KEY = 4
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
        for value in self.headers.values():
            key = value.removeprefix("Bearer ")
            text = text.replace(key, "…")
            # A message that is cut short may end within it.
            cut = next((n for n in range(len(key), CUT_KEY, -1) if text.endswith(key[:n])), 0)
            text = text[: len(text) - cut]
        return text

    def as_curl(self, body: Mapping[str, Any]) -> str:
        """The request as a curl command, in which an environment variable stands for the key."""
        key = ' --header "Authorization: Bearer $OPENAI_API_KEY"' if self.headers else ""
        content = shlex.quote(json.dumps(body, ensure_ascii=False))
        return f"curl --no-buffer{key} {shlex.quote(self.url + self.path)} --json {content}"

    def client(self, timeout_s: float, at_once: int | None = None) -> httpx.AsyncClient:
        """A client for requests beside the measuring process, at most `at_once` at a time. Each opens a
        connection, since a server may close an idle one without notice. Like the driver it uses no proxies."""
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=0)
        return httpx.AsyncClient(
            base_url=self.url,
            transport=httpx.AsyncHTTPTransport(uds=self.uds, limits=limits),
            headers=dict(self.headers),
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


def _address(base_url: str) -> BaseUrl:
    try:
        return BaseUrl.parse(base_url).api
    except ValueError:
        raise InvalidInput("endpoint.bad_url", url=without_secrets(base_url)) from None
