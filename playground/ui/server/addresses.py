"""Which hosts and origins a request may name, and which addresses are one visitor's.

A page of another website can send requests here, from its own origin or by a DNS name that leads here (DNS
rebinding). A browser always says the truth about both.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import replace

from starlette.types import Scope

from playground.config import Config


class Addresses:
    """The addresses under which visitors reach the page.

    Loopback names always do. If the page is served on every network interface, this machine's name and every IP
    address do, too: a rebound name is never an address, and behind a container's network the machine does not know
    the address that visitors use. Ports are not compared, since tunnels and containers change them.
    """

    def __init__(self, config: Config) -> None:
        self._everywhere = config.host in ("0.0.0.0", "::")
        self._origins = {str(replace(origin, path="")).lower() for origin in config.origins}
        self._roots = {origin.host: origin.path for origin in config.origins}
        self._names = {"localhost", _plain(config.host), *(origin.host for origin in config.origins)}
        if self._everywhere:
            self._names.add(socket.gethostname().lower())

    def is_ours(self, host: str) -> bool:
        """Whether a `Host` header names this page."""
        name = _plain(_name(host))
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return self._everywhere or address.is_loopback or name in self._names

    def below_root(self, scope: Scope, hosts: Iterable[str]) -> Scope:
        """The request with its path below the root under which these hosts serve the page. A proxy may have taken
        the root off the path, or not."""
        root = next(filter(None, (self._roots.get(_plain(_name(host))) for host in hosts)), "")
        path = scope["path"]
        if root and f"{path}/".startswith(f"{root}/"):
            path = path.removeprefix(root) or "/"
        return {**scope, "root_path": root, "path": path}

    def is_same(self, origin: str, host: str) -> bool:
        """Whether an `Origin` header is that of this page, as reached under `host`."""
        return origin.lower().partition("://")[2] == host.lower() or origin.lower() in self._origins


def _plain(name: str) -> str:
    """The name in lower case, or the address in its usual spelling."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()


def _name(host: str) -> str:
    """The host without its port and an IPv6 address's brackets; empty if it is not a host."""
    name, bracket, port = host.strip().partition("]")
    if bracket:
        return name[1:] if name.startswith("[") and (not port or port.startswith(":")) else ""
    name, _, port = name.partition(":")
    return name if not port or port.isdigit() else ""


def network(address: str) -> str:
    """What one visitor can choose from: a whole /64 in IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address
