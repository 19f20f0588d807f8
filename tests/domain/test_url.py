"""Addresses of endpoints: what is one, which lie below which, and that no key in one is ever shown."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.url import BaseUrl, without_secrets
from playground.domain.validation import validate
from playground.i18n import LOCALES, say_message
from playground.load.endpoint import Endpoint

BAD = [
    "http://0x7f000001:8000",
    "http://127.0.0.0x1",
    "http://[fe80::1%$(id)]:8000",
    "http://[fe80::1%eth0]",
    "http://[::1]x",
    "http://[::1]x:80",
    "",
    "http://",
    "notaurl",
    "http:/localhost:8000",
    "http:localhost:8000",
    "https//host",
    "http://localhost:",
    "http://999.1.1.1:8000",
    "http://127.0.0:8000",
    "8000",
    "http://host:8000/v1/chat/completions",
    "http://host:8000/v1/models/",
    "ftp://host",
    "file:///etc/passwd",
    "http://host:port",
    "http://host:0",
    "http://host:99999",
    "http://[::1",
    "http://[::g]",
    "http://ho st",
    "http://host\r\nX-Evil: 1",
    "http://hôst",
    "http://-host",
    "http://a..b",
    f"http://{'a' * 64}.org",
    f"http://{'.'.join(['abc'] * 64)}",
    "http://host/../v1",
    "http://host/a/./v1",
    "http://host/a//v1",
    "http://host/%2e%2e/v1",
    "http://host\\@other",
    "http://host/v1;x",
    "http://user@host",
    "http://user:sk-secret@host",
    "user:sk-secret@host",
    "http://host?key=sk-secret",
    "http://host/v1#sk-secret",
    "http://" + "a" * 3000,
]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="no") as plain:
        BaseUrl.parse(text)
    with pytest.raises(InvalidInput) as typed:
        Endpoint.from_url(text, "m")
    with pytest.raises(InvalidInput) as made:
        validate(AttachedEndpoint, {"base_url": text, "model": "m"}, where="A")
    for error in (typed.value, made.value):
        assert error.message_id == "endpoint.bad_url"
        assert all("sk-s" not in say_message(error, locale) for locale in LOCALES)
    for caught in (plain.value, typed.value, made.value):
        assert "sk-s" not in "".join(traceback.format_exception(caught))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTP://Host:80/", "http://host"),
        ("host:8000", "http://host:8000"),
        ("localhost", "http://localhost"),
        ("10.0.0.5/v1", "http://10.0.0.5/v1"),
        ("llm.example.org", "http://llm.example.org"),
        ("https://host:443/openai/v1/", "https://host/openai/v1"),
        ("http://[0:0::1]:8000", "http://[::1]:8000"),
    ],
)
def test_same_place_same_address(text: str, url: str) -> None:
    assert str(BaseUrl.parse(text)) == url
    assert BaseUrl.parse(url) == BaseUrl.parse(text)
    assert str(BaseUrl.parse(url).api) == (url if url.endswith("/v1") else f"{url}/v1")


@pytest.mark.parametrize(
    ("above", "below", "covers"),
    [
        ("https://api.example.com", "https://api.example.com/v1", True),
        ("https://api.example.com/v1", "https://api.example.com/v1", True),
        ("https://api.example.com/a/", "https://api.example.com/a/v1", True),
        ("https://api.example.com", "https://api.example.com.evil.net/v1", False),
        ("https://api.example.com", "https://api.example.com:8443/v1", False),
        ("https://api.example.com", "http://api.example.com/v1", False),
        ("https://api.example.com/a", "https://api.example.com/ab/v1", False),
        ("https://api.example.com/v1", "https://api.example.com/v10/v1", False),
        ("http://127.0.0.1:80", "http://127.0.0.1:8000/v1", False),
    ],
)
def test_below(above: str, below: str, covers: bool) -> None:
    assert BaseUrl.parse(above).covers(BaseUrl.parse(below)) == covers


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.8.9.1", True),
        ("[::1]", True),
        ("[::ffff:127.0.0.1]", True),
        ("10.0.0.1", False),
        ("localhost.evil.net", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert BaseUrl.parse(f"http://{host}:8000").is_loopback == loopback


def test_shown_without_secrets() -> None:
    assert without_secrets("http://me:sk-secret@host/v1?key=secret#secret") == "http://…@host/v1"
    assert without_secrets("sk-secret@host") == "…@host"
    assert without_secrets("host:80/v1") == "host:80/v1"


KEYED = Config.from_environment(
    {
        "PLAYGROUND_ENDPOINTS": "https://api.example.com/team, http://localhost:8000",
        "PLAYGROUND_ENDPOINT_KEYS": "https://api.example.com=sk-all, https://api.example.com/team=sk-team",
    }
)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://api.example.com/team", "sk-team"),
        ("https://api.example.com/team/one/v1", "sk-team"),
        ("http://localhost:8000", None),
    ],
)
def test_the_key_of_an_endpoint(url: str, key: str | None) -> None:
    endpoint = Endpoint.attached(KEYED, url, "m", "chat")
    assert endpoint.headers == ({"Authorization": f"Bearer {key}"} if key else {})
    assert "sk-" not in repr(endpoint) + repr(KEYED) + endpoint.as_curl({"prompt": "it's"})


@pytest.mark.parametrize(
    "url", ["https://api.example.com", "https://api.example.com/teams", "http://localhost:8001", "http://other"]
)
def test_only_what_the_host_allows_is_attached(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Endpoint.attached(KEYED, url, "m", "chat", key="sk-typed")
    assert caught.value.message_id == "endpoint.not_allowed"
    for locale in LOCALES:
        sentence = say_message(caught.value, locale)
        assert "https://api.example.com/team," in sentence
        assert "sk-" not in sentence


def test_a_key_that_is_repeated_is_not_kept() -> None:
    endpoint = Endpoint.from_url("http://host", "m", key="sk-0123456789")
    assert endpoint.without_key("bad key sk-0123456789!") == "bad key …!"
    assert endpoint.without_key("bad key sk-01234") == "bad key "
    assert Endpoint.from_url("http://host", "m").without_key("as it was") == "as it was"


HEAD = """
gpu = false
title = {en = "t", zh-CN = "题"}
shows = {en = "s", zh-CN = "示"}
needs = {en = "n", zh-CN = "需"}
[common]
target = "t"
[common.knobs]
max_num_seqs = 8
[workload]
prompt = "p"
[[sides]]
label = "A"
[[sides]]
label = "B"
base_url = "localhost:8080"
"""


def loaded(folder: Path, text: str) -> presets.Preset:
    path = folder / "mine.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    return presets.load(str(path))


def test_a_preset_with_an_attached_side(tmp_path: Path) -> None:
    preset = loaded(tmp_path, 'model = "m"')
    assert preset.sides[1].engine == AttachedEndpoint(base_url="http://localhost:8080/v1", model="m", api="chat")
    assert preset.sides[0].engine.target == "t"


@pytest.mark.parametrize(
    ("text", "message_id", "told"),
    [
        ("", "settings.missing_key", "sides.1.engine.model"),
        ('model = "m"\n[sides.knobs]\nmax_num_seqs = 4', "settings.attached_mixed", "knobs"),
        ('model = "m"\ntarget = "t"', "settings.attached_mixed", "target"),
        ('model = "m"\napi = "chats"', "settings.bad_value", "sides.1.engine.api"),
        ('model = "m"\napis = "chat"', "settings.unknown_key", "Did you mean: api?"),
        ('model = "m"\napi_key = "sk-secret"', "settings.unknown_key", "sides.1.engine.api_key"),
    ],
)
def test_a_preset_with_a_mistake(tmp_path: Path, text: str, message_id: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, text)
    assert caught.value.message_id == message_id
    assert told in say_message(caught.value)
    assert all("sk-s" not in say_message(caught.value, locale) for locale in LOCALES)
