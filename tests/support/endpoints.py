"""Sides that are attached to a server of the test."""

from __future__ import annotations

from playground.domain.spec.case import Side
from playground.domain.spec.settings import AttachedEndpoint
from support.fake_server import FakeServer


def attached(label: str, url: str, model: str = "playground") -> Side:
    return Side(label=label, engine=AttachedEndpoint(base_url=url, model=model))


def at(server: FakeServer) -> str:
    return f"http://127.0.0.1:{server.port}"
