"""The web server itself: connections that say nothing, addresses, the end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import gradio as gr
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from playground.config import Config
from playground.runs.host import Host
from playground.ui.server import connection
from playground.ui.server.connection import Connection
from playground.ui.server.server import Server, listen, served
from tests.support.waiting import eventually

Open = Callable[[bytes], socket.socket]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        if scope["path"] == "/slow":
            while (await receive())["type"] != "http.disconnect":
                pass
        body = await Request(scope, receive).body()
        if scope["path"] == "/large":
            body = b"x" * 30_000_000
        await PlainTextResponse(body or b"nothing")(scope, receive, send)


@contextlib.contextmanager
def serving(config: Config) -> Iterator[Server]:
    server = Server(listen(config.host, 0), echo)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def server(config: Config) -> Iterator[Server]:
    with serving(config) as started:
        yield started


@pytest.fixture
def opened(server: Server) -> Iterator[Open]:
    """Opens a connection that has sent so much, and no more."""
    url = httpx.URL(server.url)
    with contextlib.ExitStack() as stack:

        def open_one(sent: bytes) -> socket.socket:
            made = stack.enter_context(socket.create_connection((url.host, url.port), timeout=10))
            made.sendall(sent)
            return made

        yield open_one


HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"
SLOW = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def refused(made: socket.socket) -> bool:
    """Whether the connection ends without an answer. Raises TimeoutError where nothing comes."""
    try:
        return made.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY])
def test_a_request_that_does_not_end(monkeypatch: pytest.MonkeyPatch, opened: Open, sent: bytes) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    monkeypatch.setattr(connection, "BODY_S", 0.1)
    assert refused(opened(sent))


def test_a_second_request_that_does_not_end(monkeypatch: pytest.MonkeyPatch, opened: Open) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    made = opened(WHOLE)
    while not made.recv(4096).endswith(b"nothing"):
        pass
    made.sendall(HALF_A_HEAD)
    assert refused(made)


@pytest.mark.parametrize(
    "start",
    [b"GET /?", HALF_A_HEAD, HALF_A_HEAD + b": y\r\n" + b"a:b\r\n" * 10],
    ids=["address", "header", "headers"],
)
@pytest.mark.parametrize("answering", [False, True])
def test_a_head_that_grows(monkeypatch: pytest.MonkeyPatch, opened: Open, start: bytes, answering: bool) -> None:
    """Also that of a second request while the first is being answered."""
    monkeypatch.setattr(connection, "HEAD_BYTES", 100_000)
    made = opened((SLOW if answering else b"") + start)
    with contextlib.suppress(ConnectionError):
        for _ in range(200):
            made.sendall(b"a" * 1000)
    assert refused(made)


def test_who_opens_many_makes_room(monkeypatch: pytest.MonkeyPatch, opened: Open, server: Server) -> None:
    monkeypatch.setattr(connection, "MOST_WAITING", 5)
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port), timeout=10, source_address=("127.0.0.2", 0)) as slow:
        slow.sendall(HALF_A_HEAD)
        held = [opened(HALF_A_HEAD) for _ in range(20)]
        assert all(refused(made) for made in held[:15])
        slow.sendall(b": y\r\n\r\n")
        assert slow.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY])
def test_half_open_connections_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch, opened: Open, server: Server, sent: bytes
) -> None:
    """The oldest of them makes room."""
    monkeypatch.setattr(connection, "MOST_WAITING", 5)
    held = [opened(sent) for _ in range(20)]
    assert all(refused(made) for made in held[:15])
    assert httpx.get(server.url).text == "nothing"
    assert len(Connection.waiting) <= 5


def test_an_answer_that_is_not_taken(monkeypatch: pytest.MonkeyPatch, opened: Open) -> None:
    """It is not held for ever."""
    monkeypatch.setattr(connection, "TAKEN_S", 0.1)
    made = opened(LARGE)
    assert made.recv(15) == b"HTTP/1.1 200 OK"
    assert eventually(lambda: not Connection.by_address, within_s=20)


def test_one_address_gets_half_of_the_places(monkeypatch: pytest.MonkeyPatch, opened: Open) -> None:
    monkeypatch.setattr(Connection, "most", 8)
    held = [opened(WHOLE) for _ in range(6)]
    assert [refused(made) for made in held] == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("::1", "http://[::1]:"),
        ("localhost", "http://"),
        ("::", "http://[::1]:"),
        ("0.0.0.0", "http://127.0.0.1:"),
    ],
)
def test_addresses(config: Config, name: str, url: str) -> None:
    with serving(replace(config, host=name)) as server:
        assert server.url.startswith(url)
        assert httpx.get(server.url).text == "nothing"


@pytest.fixture
def site(config: Config) -> Iterator[Server]:
    """Gradio behind the gate, with a login."""
    config = replace(config, auth=("me", "secret"))
    with gr.Blocks() as page:
        gr.Textbox("a preset's text", label="a label")
    started = Server(listen(config.host, 0), served(Host(config), page))
    yield started
    started.close()


def test_gradio_tells_nothing_before_the_login(site: Server) -> None:
    with httpx.Client(base_url=site.url) as client:
        before = client.get("/").text
        assert "auth_required" in before
        assert "a preset" not in before
        for path in ("/config", "/gradio_api/info", "/gradio_api/openapi.json", "/gradio_api/file=app.py"):
            assert client.get(path).status_code in (401, 404)
        assert client.post("/login", data={"username": "me", "password": "wrong"}).status_code == 400
        answer = client.post("/login", data={"username": "me", "password": "secret"})
        assert [cookie.lower().count("samesite=lax") for cookie in answer.headers.get_list("set-cookie")] == [1, 1]
        assert "a preset" in client.get("/").text
        assert client.get("/config").status_code == 200
        upload = {"files": ("p.txt", b"x")}
        assert client.post("/gradio_api/upload", files=upload).status_code == 200
        foreign = {"origin": "https://evil.example"}
        assert client.post("/gradio_api/upload", files=upload, headers=foreign).status_code == 403


def test_an_open_page_does_not_keep_the_server_from_closing(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """Its heartbeat is an answer that never ends."""

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        async def beats() -> AsyncIterator[bytes]:
            while True:
                yield b"beat\n"
                await asyncio.sleep(0.01)

        if scope["type"] == "http":
            await StreamingResponse(beats())(scope, receive, send)

    server = Server(listen(config.host, 0), endless)
    with httpx.stream("GET", server.url) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "beat"
        server.close()
        with pytest.raises(httpx.TransportError):
            for _ in lines:
                pass
    assert not server._thread.is_alive()
    assert caplog.text == ""
