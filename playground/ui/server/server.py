"""The page's web server, in a thread of its own."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from playground.domain.errors import InvalidInput
from playground.runs.host import Host
from playground.ui.live.route import routes
from playground.ui.shared import view
from playground.ui.shared.labels import I18N
from playground.ui.theme import CSS, THEME

from . import operations
from .connection import Connection, places
from .front_page import FrontPage
from .gate import Gate
from .queue import Queue
from .sessions import Sessions

# Seconds after which what is still going on is given up when the server closes.
CLOSE_S = 2


class Server:
    """Serves an application on these sockets until it is closed."""

    def __init__(self, sockets: list[socket.socket], app: ASGIApp) -> None:
        Connection.most = places()
        options = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_level="warning",
            timeout_graceful_shutdown=CLOSE_S,
        )
        self._server = uvicorn.Server(options)
        self._thread = threading.Thread(target=self._server.run, args=[sockets], daemon=True)
        self._thread.start()
        self.url = _url(sockets[0])

    def close(self) -> None:
        """End the server, and every answer under way."""
        self._server.should_exit = True
        self._thread.join(timeout=CLOSE_S + 1)


def served(host: Host, page: gr.Blocks) -> ASGIApp:
    """Everything that is served: the page, behind the gate. No history of Gradio's, no telemetry, no tunnel."""
    site = FastAPI(
        routes=[*routes(host), *operations.routes(host)], docs_url=None, redoc_url=None, openapi_url=None
    )
    gr.mount_gradio_app(
        site,
        page,
        "/",
        auth=host.config.auth,
        i18n=I18N,
        css=CSS,
        css_paths=[view.ASSETS / name for name in ("style.css", "gallery.css", "present.css")],
        theme=THEME,
        run_history=False,
        # For files of prompts: anybody who reaches the page can upload one.
        max_file_size=host.config.limits.upload_bytes,
        enable_monitoring=False,
        footer_links=[],
        show_error=False,
        ssr_mode=False,
        mcp_server=False,
    )
    mounted: gr.routes.App = site.routes[-1].app  # type: ignore[attr-defined]
    mounted.state_holder = Sessions(page)
    page._queue = Queue(page)

    def is_known(request: HTTPConnection) -> bool:
        cookies = (f"access-token{kind}-{mounted.cookie_id}" for kind in ("", "-unsecure"))
        return mounted.auth is None or any(request.cookies.get(name) in mounted.tokens for name in cookies)

    async def rooted(scope: Scope, receive: Receive, send: Send) -> None:
        # ASGI's paths begin with the root, and so do the addresses that Gradio makes of them.
        path = f"{scope['root_path']}{scope['path']}" if "path" in scope else None
        await site(scope if path is None else {**scope, "path": path}, receive, send)

    return Gate(FrontPage(rooted, is_known, view.asset("language.js")), host.config, is_known)


def listen(host: str, port: int) -> list[socket.socket]:
    """A socket for each address that the host's name stands for. Raises InvalidInput, which says why this process
    can't serve there."""
    where: dict[str, object] = {"host": host, "port": port}
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InvalidInput("app.bad_host", **where, detail=error) from error
    with contextlib.ExitStack() as opened:
        sockets = list[socket.socket]()
        for family, _, _, _, address in dict.fromkeys(places):
            try:
                sockets.append(
                    opened.enter_context(socket.create_server(address[:2], family=family, backlog=2048))
                )
            except PermissionError as error:
                raise InvalidInput("app.port_privileged", **where) from error
            except OSError as error:
                # A name may also stand for an address that this machine lacks: ::1 without IPv6.
                if error.errno == errno.EADDRNOTAVAIL and (sockets or address != places[-1][4]):
                    continue
                taken = error.errno == errno.EADDRINUSE
                raise InvalidInput("app.port_taken" if taken else "app.bad_host", **where, detail=error) from error
        opened.pop_all()
    return sockets


def _url(listening: socket.socket) -> str:
    """Where a browser on this machine finds the page."""
    name, port = listening.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
