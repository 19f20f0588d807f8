"""The host's configuration: environment variables, read once."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from playground.config import SECRET, VARIABLES, Config
from playground.domain.errors import InvalidInput
from playground.domain.limits import Limits
from playground.domain.url import BaseUrl
from playground.i18n import LOCALES, say_message

GIVEN = {
    "PLAYGROUND_DB": ("/d/h.db", "db", Path("/d/h.db")),
    "PLAYGROUND_MODELS": ("/m", "models", Path("/m")),
    "PLAYGROUND_STATE": ("/s", "state", Path("/s")),
    "PLAYGROUND_HOST": ("0.0.0.0", "host", "0.0.0.0"),
    "PLAYGROUND_PORT": ("80", "port", 80),
    "PLAYGROUND_ORIGINS": (
        "https://a.b,http://c:8000",
        "origins",
        (BaseUrl(True, "a.b", 443), BaseUrl(False, "c", 8000)),
    ),
    "PLAYGROUND_AUTH": ("me:a:b", "auth", ("me", "a:b")),
    "PLAYGROUND_RUNTIMES": (
        "new=/n/python, old=/o/python",
        "runtimes",
        {"new": Path("/n/python"), "old": Path("/o/python")},
    ),
    "PLAYGROUND_ENGINES": (
        "mine=serve {model} --ports 1,{port}; other=run {model} {port}",
        "engines",
        {"mine": "serve {model} --ports 1,{port}", "other": "run {model} {port}"},
    ),
    "PLAYGROUND_ALLOWED_MODELS": ("a/b, c", "allowed_models", ("a/b", "c")),
    "PLAYGROUND_ENDPOINTS": (
        "https://a.b, c:8000/v1",
        "endpoints",
        (BaseUrl(True, "a.b", 443), BaseUrl(False, "c", 8000, "/v1")),
    ),
    "PLAYGROUND_TOKEN_PRICES": (
        "https://a.b=0.28/1.1, https://a.b/c=0/2",
        "token_prices",
        {BaseUrl(True, "a.b", 443): (0.28, 1.1), BaseUrl(True, "a.b", 443, "/c"): (0.0, 2.0)},
    ),
    "PLAYGROUND_ENDPOINT_KEYS": (
        "https://a.b=sk-1, https://a.b/c = sk=2",
        "endpoint_keys",
        {BaseUrl(True, "a.b", 443): "sk-1", BaseUrl(True, "a.b", 443, "/c"): "sk=2"},
    ),
    "PLAYGROUND_TRUST_REMOTE_CODE": ("1", "trust_remote_code", True),
    "PLAYGROUND_EXTRA_FLAGS": ("0", "extra_flags", False),
    "PLAYGROUND_CPU_KV_GIB": ("2", "cpu_kv_gib", 2),
    "PLAYGROUND_IDLE_STOP_S": ("1.5", "idle_stop_s", 1.5),
    "PLAYGROUND_START_TIMEOUT_S": ("60", "start_timeout_s", 60.0),
    "PLAYGROUND_REQUEST_TIMEOUT_S": ("9", "request_timeout_s", 9.0),
    "PLAYGROUND_LOG": ("json", "log", "json"),
    "PLAYGROUND_LIMITS": ("prompts=5, log_bytes = 7", "limits", Limits(prompts=5, log_bytes=7)),
}


def test_every_variable_is_tried_here() -> None:
    assert set(GIVEN) == set(VARIABLES)


@pytest.mark.parametrize("name", GIVEN)
def test_variable(name: str) -> None:
    text, field, value = GIVEN[name]
    assert getattr(Config.from_environment({name: text}), field) == value


@pytest.mark.parametrize("environment", [{}, dict.fromkeys(VARIABLES, ""), {"PATH": "/bin"}])
def test_unset_and_empty_mean_the_default(environment: dict[str, str]) -> None:
    assert Config.from_environment(environment) == Config()


def test_defaults_are_safe() -> None:
    config = Config.from_environment({})
    assert config.host == "127.0.0.1"
    assert not config.trust_remote_code
    assert not config.extra_flags
    # A socket's path has room for 107 bytes: `PID-NAME.sock` has to fit behind it.
    assert len(str(config.state)) < 70


def test_paths_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert Config.from_environment({"PLAYGROUND_DB": "~/h.db"}).db == Path("/home/me/h.db")
    assert Config.from_environment({"PLAYGROUND_DB": "h.db"}).db.is_absolute()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLAYGROUND_PORT", "eighty"),
        ("PLAYGROUND_STATE", "~nobody-of-this-name/state"),
        ("PLAYGROUND_CPU_KV_GIB", "0.5"),
        ("PLAYGROUND_IDLE_STOP_S", "never"),
        ("PLAYGROUND_EXTRA_FLAGS", "yes"),
        ("PLAYGROUND_AUTH", "secret"),
        ("PLAYGROUND_RUNTIMES", "/py"),
        ("PLAYGROUND_ENDPOINTS", "ftp://a.b"),
        ("PLAYGROUND_ENDPOINTS", "https://a.b,"),
        ("PLAYGROUND_ENDPOINT_KEYS", "https://a.b"),
        ("PLAYGROUND_ENDPOINT_KEYS", "sk-secret"),
        ("PLAYGROUND_ENDPOINT_KEYS", "https://a.b:sk-secret=x"),
        ("PLAYGROUND_ENDPOINT_KEYS", "https://a.b=sk secret"),
        ("PLAYGROUND_ENDPOINT_KEYS", "https://me:sk-secret@a.b=x"),
    ],
)
def test_bad_value(name: str, value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Config.from_environment({name: value})
    for locale in LOCALES:
        sentence = say_message(caught.value, locale)
        assert name in sentence
        # A password or key never reaches a screen or a log.
        assert (value in sentence) == (name not in SECRET)
    if name in SECRET:
        assert "sk-" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("promts=5", "prompts"),
        ("prompts=many", "'many'"),
        ("prompts=0", "from 1 to"),
        (f"prompts={'9' * 5000}", "from 1 to"),
        ("prompts", "PLAYGROUND_LIMITS='prompts'"),
    ],
)
def test_a_bad_limit_is_named(value: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Config.from_environment({"PLAYGROUND_LIMITS": value})
    for locale in LOCALES:
        assert "PLAYGROUND_LIMITS" in say_message(caught.value, locale)
        assert said.replace("from 1 to", "1") in say_message(caught.value, locale)


def test_unknown_variable() -> None:
    with pytest.raises(InvalidInput) as caught:
        Config.from_environment({"PLAYGROUND_PROT": "1"})
    assert caught.value.message_id == "config.unknown"
    assert "PLAYGROUND_PORT" in say_message(caught.value)
