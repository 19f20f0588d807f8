"""The page's HTML, made once: Gradio copies and renders all components for each visitor, which takes tens of
milliseconds of a processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

import brotli
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# What the HTML depends on: the address under which the visitor knows the page, and how it is packed.
HEADERS = ("host", "x-forwarded-host", "x-forwarded-proto")
# Addresses are few; a visitor who makes up others gets no more room.
MOST = 16
# Of brotli: 450 kB become 36 in 5 ms.
QUALITY = 5


class FrontPage:
    """ASGI middleware around what `is_known` distinguishes: those who have logged in, and those who have not. Runs
    `script` before anything else of the page."""

    def __init__(self, app: ASGIApp, is_known: Callable[[HTTPConnection], bool], script: str = "") -> None:
        self._app = app
        self._script = f"<head>\n<script>{script}</script>".encode()
        self._is_known = is_known
        self._made: dict[Hashable, list[Message]] = {}
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        # A query is for the scripts of the page; those that Gradio reads, for links to a page's state, are closed.
        scope = {**scope, "method": "GET", "query_string": b""}
        request = HTTPConnection(scope)
        packed = "br" in request.headers.get("accept-encoding", "")
        key = (*map(request.headers.get, HEADERS), scope["scheme"], packed, self._is_known(request))
        async with self._making:
            made = self._made.get(key)
            if made is None:
                made = await self._make(scope, receive, packed)
                if _is_for_all(made[0]):
                    self._made[key] = made
                    if len(self._made) > MOST:
                        del self._made[next(iter(self._made))]
        for message in made:
            # What sends it may change it.
            await send({**message})

    async def _make(self, scope: Scope, receive: Receive, packed: bool) -> list[Message]:
        made: list[Message] = []
        # It comes unpacked, since the script is put in.
        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]

        async def take(message: Message) -> None:
            made.append(message)

        await self._app({**scope, "headers": plain}, receive, take)
        start, body = made[0], b"".join(part.get("body", b"") for part in made[1:])
        if start["status"] == 200:
            body = body.replace(b"<head>", self._script, 1)
        headers = MutableHeaders(raw=start["headers"])
        if packed:
            body = brotli.compress(body, quality=QUALITY)
            headers["content-encoding"] = "br"
        headers["content-length"] = str(len(body))
        headers["vary"] = "accept-encoding"
        return [start, {"type": "http.response.body", "body": body}]


def _is_for_all(start: Message) -> bool:
    """Whether the answer, of which this is the start, may go to another visitor, too."""
    return start["status"] == 200 and "set-cookie" not in Headers(raw=start["headers"])
