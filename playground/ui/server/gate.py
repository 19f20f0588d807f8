"""Lets a request to the page in, or refuses it in a sentence: by host, origin, login, path and size.

It stands around everything that is served, uploads and the queue included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from gradio.utils import get_upload_folder
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playground.config import Config
from playground.i18n import locale_of, say

from .addresses import Addresses
from .throttle import Throttle
from .uploads import UPLOADS, make_room

# What the page needs, of everything that Gradio serves; the rest (monitoring, an editor, a proxy ...) is closed.
API = "/gradio_api"
PUBLIC = {"/", "/login", "/logout", "/favicon.ico", "/manifest.json", "/robots.txt", "/theme.css"}
PUBLIC |= {f"{API}/{name}" for name in ("app_id", "login_check", "startup-events", "theme.css", "user")}
PUBLIC_BELOW = ("/assets/", "/static/", "/svelte/")
# Gradio's own page calls components with a slash at the end.
NEEDS_LOGIN = {"/config", f"{API}/info", f"{API}/component_server/"}
NEEDS_LOGIN |= {f"{API}/{name}" for name in ("cancel", "component_server", "reset", "upload", "upload_progress")}
NEEDS_LOGIN |= {f"{API}/queue/{name}" for name in ("data", "join")}
NEEDS_LOGIN_BELOW = ("/live/", f"{API}/file=", f"{API}/heartbeat/", f"{API}/run/")
READING = ("GET", "HEAD")
# Where a visitor may come from another website by a link. The hub shows a Space in a frame.
ENTRANCE = "/"
FRAMES = b"frame-ancestors 'self' https://huggingface.co"
# Bytes of an upload beside its file.
ENVELOPE = 10_000


class Refused(Exception):
    """A request that is not let in: the status, and the sentence `gate.<reason>`."""

    def __init__(self, status: int, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


class Gate:
    """ASGI middleware. `is_known` tells whether a request comes from somebody who has logged in, or need not."""

    def __init__(self, app: ASGIApp, config: Config, is_known: Callable[[HTTPConnection], bool]) -> None:
        self._app = app
        self._addresses = Addresses(config)
        self._limits = config.limits
        self._is_known = is_known
        self._throttle = Throttle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        try:
            self._check(request)
            largest = self._limits.body_bytes
            if scope["path"] == f"{API}/upload":
                largest = max(largest, self._limits.upload_bytes + ENVELOPE)
                room = max(0, self._limits.uploads_bytes - largest)
                await UPLOADS.run(make_room, Path(get_upload_folder()), room)
            body = _Body(scope, receive, send, largest)
        except Refused as refused:
            await _response(request, refused)(scope, receive, send)
            return
        # Without it Gradio answers other websites as if they belonged here.
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"origin"]}
        address = request.client.host if request.client else ""
        is_login = scope["path"] == "/login"

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                if is_login and message["status"] < 400:
                    self._throttle.succeeded(address)
                message["headers"] = [
                    *map(_safe, message.get("headers", ())),
                    (b"content-security-policy", FRAMES),
                ]
            await body.send(message)

        try:
            await self._app(scope, body.receive, answer)
        except Exception:
            if not body.too_large:
                raise
        if body.too_large and not body.answered:
            await _response(request, Refused(413, "too_large"))(scope, receive, send)

    def _check(self, request: HTTPConnection) -> None:
        """Raises Refused."""
        scope, headers = request.scope, request.headers
        method, path = scope["method"], scope["path"]
        hosts = [*headers.getlist("host"), *headers.getlist("x-forwarded-host")]
        if len(headers.getlist("host")) != 1 or not all(map(self._addresses.is_ours, hosts)):
            raise Refused(421, "host")
        if self._is_foreign(request) and not (method in READING and path == ENTRANCE):
            raise Refused(403, "origin")
        if not (path in PUBLIC or path.startswith(PUBLIC_BELOW)):
            if not (path in NEEDS_LOGIN or path.startswith(NEEDS_LOGIN_BELOW)):
                raise Refused(404, "path")
            if not self._is_known(request):
                raise Refused(401, "login")
        if path == "/login" and method not in READING:
            wait = self._throttle.attempt(request.client.host if request.client else "")
            if wait:
                raise Refused(429, "throttled", retry_after_s=wait)

    def _is_foreign(self, request: HTTPConnection) -> bool:
        """Whether a page of another website has sent the request."""
        origins, host = request.headers.getlist("origin"), request.headers["host"]
        if origins:
            return not all(self._addresses.is_same(origin, host) for origin in origins)
        return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


class _Body:
    """The body of a request, which ends where it is too large, and what is sent as its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, largest: int) -> None:
        """`largest`: in bytes. Raises Refused for a body that says that it is larger."""
        self._receive = receive
        self._send = send
        self._left = largest
        self.too_large = False
        self.answered = False
        for name, value in scope["headers"]:
            if name == b"content-length" and not (value.isdigit() and int(value) <= self._left):
                raise Refused(413, "too_large")

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.too_large = self.too_large or self._left < 0
        return {"type": "http.disconnect"} if self.too_large else message

    async def send(self, message: Message) -> None:
        # What the application says of a body that was cut off is not the reason.
        if self.too_large and not self.answered:
            return
        self.answered = True
        await self._send(message)


def _response(request: HTTPConnection, refused: Refused) -> PlainTextResponse:
    sentence = say(f"gate.{refused.reason}", locale_of(request.headers.get("accept-language")))
    headers = {"connection": "close"}
    if refused.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(refused.retry_after_s))
    return PlainTextResponse(f"{sentence}\n", refused.status, headers)


def _safe(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Cookies go only with the page's own requests, and no script reads them."""
    name, value = header
    if name.lower() != b"set-cookie":
        return header
    parts = [part.strip() for part in value.split(b";")]
    kept = [part for part in parts if not part.lower().startswith((b"samesite", b"httponly"))]
    return name, b"; ".join([*kept, b"HttpOnly", b"SameSite=Lax"])
