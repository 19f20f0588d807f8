"""The address of an OpenAI-compatible endpoint."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

LONGEST = 2048
NETLOC = re.compile(r"([^@]*@)?(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(:\d+)?")
# A name of the domain name system; resolvers raise errors of their own for a part that is empty or too long.
PART = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
HOST = re.compile(rf"(?=.{{1,253}}$){PART}(\.{PART})*")
# A client adds these itself.
ROUTES = ("/chat/completions", "/completions", "/models")
# Nothing that a server could read as another path: no escapes, no dots alone, no empty segments.
PATH = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~:@-]+)*")


@dataclass(frozen=True)
class BaseUrl:
    """Scheme, host, port and path; two addresses of the same place are equal."""

    tls: bool
    host: str
    port: int
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> BaseUrl:
        """http or https; without a scheme http, if a host with a port, a dot or the name localhost follows. User
        names, queries and fragments are refused: keys belong to the host's configuration. Raises ValueError, which
        never repeats the text: it may hold a key.
        """
        if len(text) > LONGEST or not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("not an address")
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            port = parts.port
        except ValueError:
            raise ValueError("not an address") from None
        if parts.scheme not in ("http", "https") or port == 0:
            raise ValueError("not an address")
        # An IPv6 zone may contain anything, and urlsplit drops what follows the closing bracket.
        if "%" in parts.netloc or not NETLOC.fullmatch(parts.netloc):
            raise ValueError("no host")
        if parts.username is not None or any(mark in text for mark in "?#\\"):
            raise ValueError("not a plain address")
        host = _host(parts.hostname or "")
        bare = "://" not in text and port is None and not any(mark in host for mark in ".:")
        if bare and host != "localhost":
            raise ValueError("no host")
        path = parts.path.rstrip("/")
        if path.endswith(ROUTES):
            raise ValueError("not the address, but a route below it")
        if not PATH.fullmatch(path):
            raise ValueError("not a plain path")
        tls = parts.scheme == "https"
        return cls(tls, host, port or (443 if tls else 80), path)

    @property
    def api(self) -> BaseUrl:
        """The API's address: this one, with /v1 at the end."""
        return self if self.path.endswith("/v1") else replace(self, path=f"{self.path}/v1")

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"http{'s' * self.tls}://{self.netloc}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host certainly is this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")

    def covers(self, other: BaseUrl) -> bool:
        """Whether `other` lies at or below this one: the same server, and this path's segments come first."""
        server = (self.tls, self.host, self.port) == (other.tls, other.host, other.port)
        return server and f"{other.path}/".startswith(f"{self.path}/")


def _host(name: str) -> str:
    if ":" in name:
        try:
            address = ipaddress.IPv6Address(name)
            return str(address.ipv4_mapped or address)
        except ValueError:
            raise ValueError("no host") from None
    if not HOST.fullmatch(name):
        raise ValueError("no host")
    last = name.rpartition(".")[2]
    # Resolvers take a hexadecimal number for an address, too.
    if re.fullmatch(r"0x[0-9a-f]*", last):
        raise ValueError("no host")
    if last.isdigit():
        # No name of a host ends with digits alone: it is an IPv4 address, or none.
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise ValueError("no host") from None
    return name


def without_secrets(text: str) -> str:
    """An address as it was typed, without user, password, query and fragment, so that it can be shown."""
    address = re.split(r"[?#]", text[:LONGEST], maxsplit=1)[0]
    return re.sub(r"^(\w+://)?.*@", r"\1…@", address)
