"""Where the page is served: an address that can't be used is a sentence, before anything is built."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.i18n import LOCALES, say_message
from playground.load.endpoint import Endpoint
from playground.ui.server.server import listen


def free_port(family: socket.AddressFamily, address: str) -> int:
    with socket.socket(family) as trial:
        trial.bind((address, 0))
        return int(trial.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "::1", "::"])
def test_addresses_of_this_machine(host: str) -> None:
    for opened in listen(host, free_port(socket.AF_INET, "127.0.0.1")):
        opened.close()


def refusal(host: str, port: int) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        listen(host, port)
    for locale in LOCALES:
        assert host in say_message(caught.value, locale)
    return caught.value


@pytest.mark.parametrize("host", ["192.0.2.1", "x" * 70, "2001:db8::1"])
def test_no_address_of_this_machine(host: str) -> None:
    assert refusal(host, 7860).message_id == "app.bad_host"


def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert refusal("http://no.such.host", 7860).message_id == "app.bad_host"


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert refusal("127.0.0.1", server.getsockname()[1]).message_id == "app.port_taken"


def test_a_privileged_port(monkeypatch: pytest.MonkeyPatch) -> None:
    def unprivileged(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", unprivileged)
    assert refusal("127.0.0.1", 80).message_id == "app.port_privileged"


@pytest.mark.parametrize(
    ("typed", "host", "others"),
    [
        ("::1", "::1", False),
        ("[::1]", "::1", False),
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1", False),
        ("::", "::", True),
        ("127.0.0.2", "127.0.0.2", False),
        ("localhost", "localhost", False),
        ("127.example.org", "127.example.org", True),
        ("0.0.0.0", "0.0.0.0", True),
    ],
)
def test_ipv6(typed: str, host: str, others: bool, tmp_path: Path) -> None:
    config = Config.from_environment({"PLAYGROUND_HOST": typed, "PLAYGROUND_DB": str(tmp_path / "h.db")})
    assert config.host == host
    assert config.serves_others == others


@pytest.mark.parametrize(
    "variables", [{"PLAYGROUND_ORIGINS": "https://bench.example.com"}, {"PLAYGROUND_AUTH": "user:password"}]
)
def test_a_proxy_lets_others_in_too(variables: dict[str, str]) -> None:
    config = Config.from_environment(variables)
    assert config.serves_others
    with pytest.raises(InvalidInput) as refused:
        Endpoint.attached(config, "http://169.254.169.254", "model", "chat")
    assert refused.value.message_id == "endpoint.none_allowed"
