"""Which visitor a request is from: by a cookie that the server gives to each browser, where it serves others."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

import gradio as gr

from playground.config import Config

NAME = "playground-visitor"
COOKIE = re.compile(rf"(?:^|;\s*){NAME}=([\w-]{{32}})(?:;|$)")
# Who sends the request that is being answered, for what Gradio calls without one.
CURRENT: ContextVar[str] = ContextVar("visitor", default="")
# Where only this machine reaches the page, whoever sits before it.
HOST = ""
# Who has no name owns nothing that is saved.
NOBODY = "-"
YEAR_S = 31_536_000


def visitor_of(config: Config, request: gr.Request) -> str:
    """The visitor's own name, which nobody else knows; without a cookie it lasts as long as the open page."""
    if not config.serves_others:
        return HOST
    return known_visitor(request.headers.get("cookie", "")) or f"page {request.session_hash}"


def known_visitor(cookies: str) -> str | None:
    """The name in a request's cookies; None without one."""
    match = COOKIE.search(cookies)
    return match[1] if match else None


def new_cookie(secure: bool) -> str:
    """The header that names a new visitor. In the frame in which the hub shows a Space, browsers send it back only
    if it says so itself."""
    site = "Secure; SameSite=None; Partitioned" if secure else "SameSite=Lax"
    return f"{NAME}={secrets.token_urlsafe(24)}; Path=/; Max-Age={YEAR_S}; HttpOnly; {site}"
