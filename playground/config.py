"""The host's configuration: environment variables `PLAYGROUND_*`, read once at start.

The table in docs/configuration.md is checked against `VARIABLES`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

from playground.domain.errors import InvalidInput
from playground.domain.limits import DEFAULTS, MOST, Limits
from playground.domain.url import BaseUrl
from playground.domain.validation import nearest_of

NumberT = TypeVar("NumberT", int, float)
ValueT = TypeVar("ValueT")

VARIABLES: dict[str, str] = {
    "PLAYGROUND_DB": "the history's SQLite file",
    "PLAYGROUND_MODELS": "the folder that holds fetched and converted models",
    "PLAYGROUND_STATE": "sockets, logs, the host's lock and what was learnt about runtimes",
    "PLAYGROUND_HOST": "address the page is served on",
    "PLAYGROUND_PORT": "port the page is served on",
    "PLAYGROUND_ORIGINS": "addresses under which visitors reach the page, comma-separated",
    "PLAYGROUND_AUTH": "user:password that visitors must enter",
    "PLAYGROUND_RUNTIMES": "more Python interpreters that have vLLM: name=/path/to/python, comma-separated",
    "PLAYGROUND_ENGINES": "other engines: name=a command with {model} and {port} in it, separated by semicolons",
    "PLAYGROUND_ALLOWED_MODELS": "if set, only these targets and drafts may run, comma-separated",
    "PLAYGROUND_ENDPOINTS": "if set, only endpoints at or below these addresses may be attached, comma-separated",
    "PLAYGROUND_ENDPOINT_KEYS": "keys of attached endpoints: https://api.example.com=KEY, comma-separated",
    "PLAYGROUND_TOKEN_PRICES": "prices of a million tokens of prompt and answer: https://api.example.com=0.28/1.10",
    "PLAYGROUND_TRUST_REMOTE_CODE": "1 lets settings run a model's own code",
    "PLAYGROUND_EXTRA_FLAGS": "1 lets visitors pass extra engine flags",
    "PLAYGROUND_CPU_KV_GIB": "KV-cache space of each engine on a CPU, in GiB",
    "PLAYGROUND_IDLE_STOP_S": "engines that nobody used for this many seconds are stopped",
    "PLAYGROUND_START_TIMEOUT_S": "an engine that is not ready after this many seconds is given up",
    "PLAYGROUND_REQUEST_TIMEOUT_S": "a stream that is silent for this many seconds is given up",
    "PLAYGROUND_LOG": "text, or json for one line of JSON an event",
    "PLAYGROUND_LIMITS": "other limits than the defaults: name=number, comma-separated",
}

SWITCH = {"0": False, "1": True}
LISTS = (
    *("RUNTIMES", "ENGINES", "ALLOWED_MODELS", "ORIGINS"),
    *("ENDPOINTS", "ENDPOINT_KEYS", "TOKEN_PRICES", "LIMITS"),
)
LOGS = {form: form for form in ("text", "json")}

# Error messages never contain the values of these.
SECRET = ("PLAYGROUND_AUTH", "PLAYGROUND_ENDPOINT_KEYS")


def _state_root() -> Path:
    # A Unix socket's path has at most 107 bytes, and all checkouts on a host share one lock.
    return Path(tempfile.gettempdir()) / f"vllm-ab-playground-{os.getuid()}"


def cache_root() -> Path:
    """The folder of this user for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vllm-ab-playground"


def _data_root() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "vllm-ab-playground"


def _origins() -> tuple[BaseUrl, ...]:
    # The hub tells a Space the name under which it serves it.
    space = os.environ.get("SPACE_HOST")
    return (BaseUrl.parse(f"https://{space}"),) if space else ()


@dataclass(frozen=True)
class Config:
    """The host's configuration. Names carry the units: seconds (`_s`) and GiB (`_gib`)."""

    db: Path = field(default_factory=lambda: _data_root() / "history.db")
    models: Path = field(default_factory=lambda: cache_root() / "models")
    state: Path = field(default_factory=_state_root)
    host: str = "127.0.0.1"
    port: int = 7860
    origins: tuple[BaseUrl, ...] = field(default_factory=_origins)
    auth: tuple[str, str] | None = None
    runtimes: Mapping[str, Path] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    allowed_models: tuple[str, ...] = ()
    endpoints: tuple[BaseUrl, ...] = ()
    endpoint_keys: Mapping[BaseUrl, str] = field(default_factory=dict, repr=False)
    token_prices: Mapping[BaseUrl, tuple[float, float]] = field(default_factory=dict)
    trust_remote_code: bool = False
    extra_flags: bool = False
    cpu_kv_gib: int = 1
    idle_stop_s: float = 900
    start_timeout_s: float = 1200
    request_timeout_s: float = 120
    log: str = "text"
    limits: Limits = DEFAULTS

    @property
    def serves_others(self) -> bool:
        """Whether the page can be reached from other machines, by itself or through a proxy in front of it."""
        if self.origins or self.auth is not None:
            return True
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host != "localhost"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Config:
        """Raises InvalidInput for a variable that is unknown or can't be read."""
        return cls(**_read(environment))  # type: ignore[arg-type]

    def endpoint_key(self, url: BaseUrl) -> str | None:
        """The key of the longest configured address that covers the endpoint; None without one."""
        return _nearest(self.endpoint_keys, url)

    def prices_at(self, url: BaseUrl) -> tuple[float, float] | None:
        """What a million tokens of a prompt and of an answer cost there, by the same rule."""
        return _nearest(self.token_prices, url)


def _nearest(values: Mapping[BaseUrl, ValueT], url: BaseUrl) -> ValueT | None:
    covering = [address for address in values if address.covers(url)]
    return values[max(covering, key=lambda address: len(address.path))] if covering else None


def _read(environment: Mapping[str, str]) -> dict[str, object]:
    variables = {name: value for name, value in environment.items() if name.startswith("PLAYGROUND_") and value}
    if unknown := sorted(variables.keys() - VARIABLES.keys()):
        raise InvalidInput("config.unknown", name=unknown[0], known=", ".join(VARIABLES))
    return {name.removeprefix("PLAYGROUND_").lower(): _parse(name, value) for name, value in variables.items()}


def _parse(name: str, value: str) -> object:
    try:
        match name.removeprefix("PLAYGROUND_"):
            case "DB" | "MODELS" | "STATE":
                return Path(value).expanduser().absolute()
            case "HOST":
                # A browser's spelling of an IPv6 address is taken, too.
                return value.removeprefix("[").removesuffix("]")
            case "PORT":
                return _within(int(value), 1, 65535)
            case "CPU_KV_GIB":
                return _within(int(value), 1, 65536)
            case "IDLE_STOP_S" | "START_TIMEOUT_S" | "REQUEST_TIMEOUT_S":
                return _within(float(value), 1e-3, 1e9)
            case "TRUST_REMOTE_CODE" | "EXTRA_FLAGS" | "LOG" as kind:
                return (LOGS if kind == "LOG" else SWITCH)[value]
            case "AUTH":
                user, password = value.split(":", 1)
                return (user, password)
            case kind if kind in LISTS:
                # A command may contain commas.
                separator = ";" if kind == "ENGINES" else ","
                return _parse_list(kind, [item.strip() for item in value.split(separator)])
            case _:
                return value
    except (ValueError, KeyError, RuntimeError) as error:
        # RuntimeError: a home of somebody who does not exist.
        displayed = "…" if name in SECRET else value
        raise InvalidInput("config.bad_value", name=name, value=displayed, meaning=VARIABLES[name]) from error


def _parse_list(kind: str, items: list[str]) -> object:
    match kind:
        case "RUNTIMES":
            pairs = (item.split("=", 1) for item in items)
            return {key.strip(): Path(path.strip()) for key, path in pairs}
        case "LIMITS":
            return replace(DEFAULTS, **dict(_limit(item) for item in items))
        case "ENDPOINTS" | "ORIGINS":
            return tuple(BaseUrl.parse(item) for item in items)
        case "ENGINES":
            return dict(_engine(item) for item in items)
        case "ENDPOINT_KEYS":
            return dict(_endpoint_key(item) for item in items)
        case "TOKEN_PRICES":
            return dict(map(_token_prices, items))
        case _:
            return tuple(items)


def _limit(text: str) -> tuple[str, int]:
    """Parse NAME=NUMBER."""
    name, number = map(str.strip, text.split("=", 1))
    names = [field.name for field in fields(Limits)]
    if name not in names:
        raise InvalidInput("limits.unknown", name=name, nearest=nearest_of(name, names))
    whole = number.isascii() and number.isdecimal() and len(number) <= len(str(MOST))
    if not whole or not 1 <= int(number) <= MOST:
        raise InvalidInput("limits.bad_value", name=name, value=number, most=MOST)
    return name, int(number)


def _engine(text: str) -> tuple[str, str]:
    """Parse NAME=COMMAND. Raises ValueError."""
    name, command = map(str.strip, text.split("=", 1))
    if not name or len(shlex.split(command)) < 2 or "{port}" not in command or "{model}" not in command:
        raise ValueError("no command")
    return name, command


def _endpoint_key(text: str) -> tuple[BaseUrl, str]:
    """Parse ADDRESS=KEY. Raises ValueError, whose text contains neither."""
    address, _, key = text.partition("=")
    if not re.fullmatch(r"[\x21-\x7e]+", key.strip()):
        raise ValueError("no key")
    return BaseUrl.parse(address.strip()), key.strip()


def _token_prices(text: str) -> tuple[BaseUrl, tuple[float, float]]:
    """Parse ADDRESS=PROMPT/ANSWER. Raises ValueError."""
    address, _, prices = text.rpartition("=")
    asked, answered = (_within(float(price), 0, 1e6) for price in prices.split("/"))
    return BaseUrl.parse(address.strip()), (asked, answered)


def _within(value: NumberT, low: float, high: float) -> NumberT:
    """The value. Raises ValueError for one outside the range, and for NaN."""
    if not low <= value <= high:
        raise ValueError
    return value
