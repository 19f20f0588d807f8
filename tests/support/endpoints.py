"""Sides that are attached to a server of the test, and as short a measurement of them as there is."""

from __future__ import annotations

from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.spec.workload import Sampling, Workload
from support.fake_server import FakeServer


def attached(label: str, url: str, model: str = "playground") -> Side:
    return Side(label=label, engine=AttachedEndpoint(base_url=url, model=model))


def at(server: FakeServer) -> str:
    return f"http://127.0.0.1:{server.port}"


# One round is always made.
PLAN = Measurement(
    profile=ConcurrencyProfile(requests=1), budget_s=0.001, check_outputs=False, check_accuracy=True
)
ASKED = Workload(prompt="x", sampling=Sampling(max_tokens=3))
