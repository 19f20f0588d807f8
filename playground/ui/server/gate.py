"""Lets a request to the page in, or refuses it in a sentence: by host, origin, login, path and size.

It stands around everything that is served, uploads and the queue included.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gradio.utils import get_upload_folder
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playground.config import Config
from playground.ui.shared.visitor import CURRENT, HOST, NOBODY, known_visitor, new_cookie

from .addresses import Addresses
from .bodies import Bodies, length_of, read
from .operations import HEALTH, METRICS
from .refused import Refused
from .throttle import Throttle
from .uploads import UPLOADS, make_room

# What the page needs, of everything that Gradio serves; the rest (monitoring, an editor, a proxy ...) is closed.
API = "/gradio_api"
PUBLIC = {"/", "/login", "/logout", "/favicon.ico", "/manifest.json", "/robots.txt", "/theme.css"}
# The latter answers this machine alone.
PUBLIC |= {HEALTH, METRICS}
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
LOGIN, UPLOAD = "/login", f"{API}/upload"
FRAMES = b"frame-ancestors 'self' https://huggingface.co"
# Bytes of an upload beside its file, and of a login.
ENVELOPE = 10_000


class Gate:
    """ASGI middleware. `is_known` tells whether a request comes from somebody who has logged in, or need not."""

    def __init__(self, app: ASGIApp, config: Config, is_known: Callable[[HTTPConnection], bool]) -> None:
        self._app = app
        self._addresses = Addresses(config)
        self._limits = config.limits
        self._serves_others = config.serves_others
        self._is_known = is_known
        self._throttle = Throttle()
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts = [*headers.getlist("host"), *headers.getlist("x-forwarded-host")]
        scope = self._addresses.below_root(scope, hosts)
        request = HTTPConnection(scope)
        address = request.client.host if request.client else ""
        named = known_visitor(request.headers.get("cookie", "")) or NOBODY
        CURRENT.set(named if self._serves_others else HOST)
        is_upload = scope["path"] == UPLOAD
        try:
            self._check(request, hosts)
            length = length_of(request, self._longest(scope["path"]))
            if is_upload:
                room = max(0, self._limits.uploads_bytes - self._longest(UPLOAD))
                await UPLOADS.run(make_room, Path(get_upload_folder()), room)
            # The file of an upload goes to the disk as it arrives.
            with self._bodies.place(address, 0 if is_upload else length):
                whole = receive if is_upload or not length else await read(receive)
                if whole is not None:
                    await self._pass_on(scope, whole, send, address)
        except Refused as refused:
            await refused.answer(request)(scope, receive, send)

    def _longest(self, path: str) -> int:
        """The longest body that is received there, in bytes."""
        if path == LOGIN:
            return ENVELOPE
        return max(self._limits.body_bytes, self._limits.upload_bytes + ENVELOPE if path == UPLOAD else 0)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, address: str) -> None:
        # Without it Gradio answers other websites as if they belonged here.
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"origin"]}
        is_login = scope["path"] == LOGIN
        cookies = self._cookies(scope)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                if is_login and message["status"] < 400:
                    self._throttle.succeeded(address)
                message["headers"] = [
                    *map(_safe, message.get("headers", ())),
                    *cookies,
                    (b"content-security-policy", FRAMES),
                ]
            await send(message)

        await self._app(scope, receive, answer)

    def _cookies(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Where others are served, each browser gets a name with its first page."""
        headers = Headers(scope=scope)
        if not self._serves_others or scope["path"] != ENTRANCE or known_visitor(headers.get("cookie", "")):
            return []
        secure = "https" in (scope["scheme"], headers.get("x-forwarded-proto"))
        return [(b"set-cookie", new_cookie(secure).encode())]

    def _check(self, request: HTTPConnection, hosts: list[str]) -> None:
        """Raises Refused."""
        scope, headers = request.scope, request.headers
        method, path = scope["method"], scope["path"]
        if len(headers.getlist("host")) != 1 or not all(map(self._addresses.is_ours, hosts)):
            raise Refused(421, "host")
        if self._is_foreign(request) and not (method in READING and path == ENTRANCE):
            raise Refused(403, "origin")
        if not (path in PUBLIC or path.startswith(PUBLIC_BELOW)):
            if not (path in NEEDS_LOGIN or path.startswith(NEEDS_LOGIN_BELOW)):
                raise Refused(404, "path")
            if not self._is_known(request):
                raise Refused(401, "login")
        if path == LOGIN and method not in READING:
            wait = self._throttle.attempt(request.client.host if request.client else "")
            if wait:
                raise Refused(429, "throttled", retry_after_s=wait)

    def _is_foreign(self, request: HTTPConnection) -> bool:
        """Whether a page of another website has sent the request."""
        origins, host = request.headers.getlist("origin"), request.headers["host"]
        if origins:
            return not all(self._addresses.is_same(origin, host) for origin in origins)
        return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _safe(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Cookies go only with the page's own requests, and no script reads them."""
    name, value = header
    if name.lower() != b"set-cookie":
        return header
    parts = [part.strip() for part in value.split(b";")]
    kept = [part for part in parts if not part.lower().startswith((b"samesite", b"httponly"))]
    return name, b"; ".join([*kept, b"HttpOnly", b"SameSite=Lax"])
