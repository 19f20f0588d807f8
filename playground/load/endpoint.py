"""Where an engine answers, what it understands, and the request bodies that follow from that."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from ..domain.errors import InvalidInput
from ..domain.workload import Conversation, Sampling

Api = Literal["chat", "completions"]
PATHS: dict[Api, str] = {"chat": "/chat/completions", "completions": "/completions"}


@dataclass(frozen=True)
class Capabilities:
    """What an endpoint does beyond the OpenAI API's core. vLLM does all of it, so all is the default.

    `token_ids` and `running_usage` were seen in an answer. The others were accepted, which is all one can see,
    unless the endpoint told that a salt changed nothing. `refused` names sampling parameters.
    """

    token_ids: bool = True
    running_usage: bool = True
    usage: bool = True
    cache_salt: bool = True
    ignore_eos: bool = True
    refused: tuple[str, ...] = ()
    max_model_len: int | None = None


@dataclass(frozen=True)
class Endpoint:
    """Where a side's engine answers. `uds` wins over host and port. Headers may hold a key: never shown."""

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
        try:
            parts = urlsplit(base_url if "://" in base_url else f"http://{base_url}")
            port = parts.port
        except ValueError as error:
            raise InvalidInput("endpoint.bad_url", url=base_url) from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise InvalidInput("endpoint.bad_url", url=base_url)
        path = parts.path.rstrip("/")
        tls = parts.scheme == "https"
        return cls(
            model,
            host=parts.hostname,
            port=port or (443 if tls else 80),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            api=api,
            tls=tls,
            base_path=path if path.endswith("/v1") else f"{path}/v1",
        )

    @property
    def url(self) -> str:
        """The base URL as a person would type it; an engine on a Unix socket has a stand-in for a host."""
        if self.uds is not None:
            return f"http://localhost{self.base_path}"
        host = f"[{self.host}]" if ":" in (self.host or "") else self.host
        standard = self.port == (443 if self.tls else 80)
        return f"http{'s' * self.tls}://{host}{'' if standard else f':{self.port}'}{self.base_path}"

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
            "headers": {"Host": urlsplit(self.url).netloc, **self.headers},
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
        # A completion knows no roles, and gets the plain text.
        return {"prompt": "\n\n".join(message.content for message in conversation)}

    def new_salt(self, salted: bool) -> str | None:
        """A prefix-cache salt; without one, a prompt seen before is served from the engine's prefix cache."""
        return uuid.uuid4().hex if salted and self.capabilities.cache_salt else None
