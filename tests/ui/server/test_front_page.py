"""The page's HTML is made once for each address and login, whoever asks for it at the same time."""

from __future__ import annotations

import asyncio

import httpx
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import Receive, Scope, Send

from playground.ui.server import front_page
from playground.ui.server.front_page import FrontPage


class Site:
    """Counts how often it makes its page."""

    def __init__(self) -> None:
        self.made = 0
        self.status = 200
        self.cookie = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.made += 1
        await asyncio.sleep(0)
        request = Request(scope)
        response = PlainTextResponse(f"{request.headers['host']}{scope['path']} {is_known(request)}", self.status)
        if self.cookie:
            response.set_cookie("who", "me")
        await response(scope, receive, send)


def is_known(request: HTTPConnection) -> bool:
    return "known" in request.cookies


def visitor(site: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(FrontPage(site, is_known)), base_url="http://page")


async def test_a_hundred_at_once() -> None:
    site = Site()
    async with visitor(site) as client:
        answers = await asyncio.gather(*(client.get("/") for _ in range(100)))
        assert {answer.text for answer in answers} == {"page/ False"}
        assert site.made == 1
        assert (await client.get("/", headers={"cookie": "known=1"})).text == "page/ True"
        assert (await client.get("/", headers={"host": "other"})).text == "other/ False"
        assert site.made == 3


async def test_its_script_comes_first_however_the_page_is_packed() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await HTMLResponse("<html><head><title>x</title></head></html>")(scope, receive, send)

    page = FrontPage(app, is_known, "begin()")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(page), base_url="http://page") as client:
        for packing in ("br", "identity"):
            answer = await client.get("/", headers={"accept-encoding": packing})
            assert answer.text.startswith("<html><head>\n<script>begin()</script><title>")
            assert answer.headers.get("content-encoding", "identity") == packing


async def test_a_query_makes_no_other_page() -> None:
    site = Site()
    async with visitor(site) as client:
        for number in range(10):
            assert (await client.get(f"/?x={number}")).text == "page/ False"
        assert (await client.head("/")).status_code == 200
        assert site.made == 1


async def test_what_is_not_kept() -> None:
    site = Site()
    async with visitor(site) as client:
        assert [(await client.get("/config")).status_code for _ in range(2)] == [200, 200]
        assert site.made == 2
        site.status = 500
        assert (await client.get("/")).status_code == 500
        site.status, site.cookie = 200, True
        assert (await client.get("/")).status_code == 200
        site.cookie = False
        assert "set-cookie" not in (await client.get("/")).headers
        made = site.made
        await client.get("/")
        assert site.made == made
        # Addresses that are made up take no room.
        for number in range(2 * front_page.MOST):
            await client.get("/", headers={"host": f"h{number}"})
        assert len(client._transport.app._made) == front_page.MOST  # type: ignore[attr-defined]
