"""Who is let in: every route is behind the same gate, and what it refuses never reaches the page."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from playground.config import Config
from playground.domain.limits import Limits
from playground.domain.url import BaseUrl
from playground.ui.server import bodies, throttle
from playground.ui.server.gate import API, Gate
from playground.ui.server.refused import Refused
from playground.ui.shared.visitor import CURRENT, NAME, NOBODY, known_visitor

HERE = "127.0.0.1:7860"
JOIN = f"{API}/queue/join"


class Page:
    """Stands for everything behind the gate: notes what reaches it, and sets a cookie as Gradio does."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.roots: list[str] = []
        self.bodies: list[int] = []
        self.known = True
        self.status = 200
        self.visitors: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached.append(scope["path"])
        self.roots.append(scope["root_path"])
        self.visitors.append(CURRENT.get())
        request = Request(scope, receive)
        assert "origin" not in request.headers
        self.bodies.append(len(await request.body()))
        response = Response(status_code=self.status)
        response.set_cookie("token", "secret", samesite="none", secure=True)
        await response(scope, receive, send)

    def is_known(self, request: HTTPConnection) -> bool:
        return self.known


@pytest.fixture
def page() -> Page:
    return Page()


def visitor(page: Page, config: Config, address: str = "127.0.0.1") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Gate(page, config, page.is_known), client=(address, 5000))
    return httpx.AsyncClient(transport=transport, base_url=f"http://{HERE}")


@pytest.fixture
async def client(page: Page, config: Config) -> AsyncIterator[httpx.AsyncClient]:
    async with visitor(page, config) as opened:
        yield opened


ROUTES = [
    ("GET", "/"),
    ("GET", "/config"),
    ("POST", "/login"),
    ("POST", JOIN),
    ("GET", f"{API}/queue/data"),
    ("POST", f"{API}/upload"),
    ("POST", f"{API}/component_server/"),
    ("POST", f"{API}/run/predict"),
    ("GET", f"{API}/file=/etc/passwd"),
    ("GET", "/assets/index.js"),
    ("GET", "/live/run/1"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.9", "localhost@evil", ""])
async def test_a_foreign_host(client: httpx.AsyncClient, page: Page, method: str, path: str, host: str) -> None:
    """A name that was made to lead here."""
    answer = await client.request(method, path, headers={"host": host})
    assert (answer.status_code, page.reached) == (421, [])
    assert "PLAYGROUND_ORIGINS" in answer.text


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[1] != "/"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "http://127.0.0.1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_another_website(
    client: httpx.AsyncClient, page: Page, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = await client.request(method, path, headers=headers)
    assert (answer.status_code, page.reached) == (403, [])


async def test_a_link_from_elsewhere_opens_the_page_and_nothing_is_read_by_other_websites(
    client: httpx.AsyncClient, page: Page
) -> None:
    answer = await client.get("/", headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    assert (await client.post("/", headers={"origin": "https://evil.example"})).status_code == 403
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert (await client.options(JOIN, headers=preflight)).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8888", "[::1]:7860", "127.1.2.3"])
async def test_the_page_s_own_requests(client: httpx.AsyncClient, host: str) -> None:
    """A tunnel changes the port."""
    headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    for method, path in ROUTES:
        assert (await client.request(method, path, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("served_on", "host", "status"),
    [
        ("0.0.0.0", "10.1.2.3:7860", 200),
        ("::", "[2001:db8::1]", 200),
        ("0.0.0.0", "evil.example", 421),
        ("10.1.2.3", "10.1.2.3:7860", 200),
        ("10.1.2.3", "10.9.9.9:7860", 421),
        ("bench.local", "BENCH.local", 200),
        ("127.0.0.1", "bench.example.com", 200),
        ("127.0.0.1", "bench.example.com.evil.example", 421),
    ],
)
async def test_other_addresses(page: Page, config: Config, served_on: str, host: str, status: int) -> None:
    config = replace(config, host=served_on, origins=(BaseUrl.parse("https://bench.example.com"),))
    async with visitor(page, config) as client:
        assert (await client.get("/", headers={"host": host})).status_code == status


async def test_a_proxy_that_changes_the_host(page: Page, config: Config) -> None:
    config = replace(config, origins=(BaseUrl.parse("https://bench.example.com"),))
    headers = {"origin": "https://bench.example.com", "x-forwarded-host": "bench.example.com"}
    async with visitor(page, config) as client:
        assert (await client.post(JOIN, headers=headers)).status_code == 200
        assert (await client.post(JOIN, headers={"x-forwarded-host": "evil.example"})).status_code == 421
        assert (await client.post(JOIN, headers={"origin": "https://evil.example"})).status_code == 403


@pytest.mark.parametrize(
    ("path", "below"),
    [("/", "/"), ("/bench/", "/"), ("/bench", "/"), ("/bench/config", "/config"), ("/config", "/config")],
)
async def test_a_root_that_a_proxy_takes_off_or_not(page: Page, config: Config, path: str, below: str) -> None:
    config = replace(config, origins=(BaseUrl.parse("https://example.com/bench"),))
    headers = {"host": "example.com", "origin": "https://example.com"}
    async with visitor(page, config) as client:
        assert (await client.get(path, headers=headers)).status_code == 200
        assert (await client.get("/benchmark", headers=headers)).status_code == 404
        assert (await client.get("/bench", headers={"host": HERE})).status_code == 404
    assert page.reached == [below]
    assert page.roots == ["/bench"]


@pytest.mark.parametrize(
    "path",
    ["/monitoring", "/monitoring/summary", "/docs", "/redoc", "/openapi.json", f"{API}/openapi.json"]
    + [f"{API}/{name}" for name in ("proxy=https://x.hf.space", "vibe-code", "runs", "deep_link", "dev/reload")]
    + ["/login/", "//login", "/config/", f"{API}/call/x"],
)
async def test_what_the_page_does_not_need_is_closed(client: httpx.AsyncClient, page: Page, path: str) -> None:
    assert (await client.get(f"http://{HERE}{path}")).status_code == 404
    assert page.reached == []


async def test_before_the_login_only_the_form_is_served(client: httpx.AsyncClient, page: Page) -> None:
    page.known = False
    for method, path in ROUTES:
        public = path in ("/", "/login") or path.startswith("/assets/")
        assert (await client.request(method, path)).status_code == (200 if public else 401), path


async def test_cookies_stay_on_this_site(client: httpx.AsyncClient) -> None:
    answer = await client.get("/")
    assert answer.headers["set-cookie"] == "token=secret; Path=/; Secure; HttpOnly; SameSite=Lax"


async def test_guessing_is_slowed_down(page: Page, config: Config) -> None:
    """Also for the right password, since its time would tell; another address is not kept waiting."""
    page.status = 400
    shared = Gate(page, config, page.is_known)

    def client(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(shared, client=(address, 1)), base_url=f"http://{HERE}"
        )

    async with client("10.0.0.1") as attacker, client("10.0.0.2") as owner:
        statuses = [(await attacker.post("/login")).status_code for _ in range(throttle.FREE + 20)]
        assert statuses == [400] * throttle.FREE + [429] * 20
        answer = await attacker.post("/login")
        assert int(answer.headers["retry-after"]) >= 1
        page.status = 200
        assert (await owner.post("/login")).status_code == 200
        assert (await attacker.post("/login")).status_code == 429


def test_delays_grow_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(throttle.time, "monotonic", lambda: now)
    guarded = throttle.Throttle()
    assert [guarded.attempt("a") for _ in range(throttle.FREE)] == [0] * throttle.FREE
    delays = []
    for _ in range(12):
        delays.append(guarded.attempt("a"))
        now += delays[-1]
        assert guarded.attempt("a") == 0
    assert delays[:4] == [1, 2, 4, 8]
    assert max(delays) == throttle.LONGEST_S
    guarded.succeeded("a")
    assert guarded.attempt("a") == 0
    # An IPv6 visitor has a whole network to choose from.
    taken = [guarded.attempt(f"2001:db8::{number:x}") for number in range(throttle.FREE + 1)]
    assert taken[-1] > 0
    # Many addresses: together they are slowed down, too.
    assert any(guarded.attempt(f"10.0.1.{number}") for number in range(throttle.FREE_FOR_ALL))


async def test_large_bodies(page: Page, config: Config) -> None:
    """A body says how long it is, and what is refused is not received."""
    config = replace(config, limits=Limits(body_bytes=1000, upload_bytes=5000))
    client = visitor(page, config)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 100

    assert (await client.post(JOIN, content=b"x" * 1001)).status_code == 413
    assert (await client.post(JOIN, content=pieces())).status_code == 411
    assert (await client.post(JOIN, headers={"content-length": "-1"})).status_code == 413
    assert (await client.post("/login", content=b"x" * 10_001)).status_code == 413
    assert page.reached == []
    assert (await client.post(JOIN, content=b"x" * 1000)).status_code == 200
    assert (await client.post(f"{API}/upload", content=b"x" * 15_000)).status_code == 200
    assert (await client.post(f"{API}/upload", content=b"x" * 15_001)).status_code == 413
    assert page.bodies == [1000, 15_000]


@pytest.mark.parametrize("value", [b"[]", b"{}", b'""', b"0", b'"a\\"b,c"'])
async def test_a_body_of_very_many_values(client: httpx.AsyncClient, page: Page, value: bytes) -> None:
    """It would become hundreds of times its size."""
    answer = await client.post(JOIN, content=b'{"data": [' + b",".join([value] * 30_000) + b"]}")
    assert answer.status_code == 413
    assert page.reached == []


async def test_a_long_text_is_one_value(client: httpx.AsyncClient, page: Page) -> None:
    text = json.dumps({"data": ['"Well", he said, "[1, 2, {3}]" \\' * 100_000]}).encode()
    assert (await client.post(JOIN, content=text)).status_code == 200
    assert page.bodies == [len(text)]


def test_bodies_that_are_held_together() -> None:
    """One visitor leaves room for others, and a short one always has a place."""
    held, length = bodies.Bodies(), bodies.MOST_HELD // 4
    with contextlib.ExitStack() as places:
        for _ in range(2):
            places.enter_context(held.place("a", length))
        with pytest.raises(Refused, match="busy"), held.place("a", length):
            pass
        places.enter_context(held.place("a", 1000))
        places.enter_context(held.place("b", length))
    with held.place("a", 2 * length):
        pass


async def test_each_browser_has_a_name_where_others_are_served(page: Page, config: Config) -> None:
    page.known = True
    async with visitor(page, replace(config, origins=(BaseUrl.parse(f"http://{HERE}"),))) as others:
        [first, second] = [(await others.get("/", headers={"cookie": ""})).headers for _ in range(2)]
        names = [known_visitor(headers["set-cookie"].replace(", ", "; ")) for headers in (first, second)]
        assert None not in names
        assert names[0] != names[1]
        assert "HttpOnly; SameSite=Lax" in first["set-cookie"]
        # Who has a name keeps it, and only the page gives names.
        again = await others.get("/", headers={"cookie": f"a=b; {NAME}={names[0]}"})
        assert NAME not in again.headers["set-cookie"]
        assert NAME not in (await others.get("/assets/index.js")).headers.get("set-cookie", "")
        assert page.visitors[-4:-1] == [NOBODY, NOBODY, names[0]]
        framed = await others.get("/", headers={"x-forwarded-proto": "https", "cookie": ""})
        assert "Secure; SameSite=None; Partitioned" in framed.headers["set-cookie"]
    async with visitor(page, config) as alone:
        assert NAME not in (await alone.get("/")).headers["set-cookie"]
        assert page.visitors[-1] == ""
