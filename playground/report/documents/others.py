"""The smaller documents: a load test, a check of the machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.record.figures import NotNegative
from playground.domain.record.metrics import trace_figures
from playground.runs.load_test import LoadTest

from .parts import (
    SCHEMA_VERSION,
    ProfileDocument,
    SchemaVersion,
    SideFiguresDocument,
    side_figures_document,
)


class LoadDocument(TypedDict):
    """load --json."""

    schema: SchemaVersion
    url: str
    """The base URL."""
    model: str
    profile: ProfileDocument
    figures: SideFiguresDocument
    client_cpu_s: NotNegative | None
    """Processor time of the measuring process from the first send until all was parsed."""
    wall_s: NotNegative | None
    """From the first send to the last byte."""


class CheckDocument(TypedDict):
    state: Literal["ok", "note", "broken"]
    """note: works, with a limitation."""
    id: str
    message: str


DoctorDocument = Annotated[list[CheckDocument], Field(min_length=1, description="doctor --json.")]


def load_document(test: LoadTest) -> LoadDocument:
    return {
        "schema": SCHEMA_VERSION,
        "url": test.endpoint.url,
        "model": test.endpoint.model,
        "profile": test.profile.model_dump(mode="json", exclude_none=True),
        "figures": side_figures_document(trace_figures(test.traces)),
        "client_cpu_s": test.client_cpu_s,
        "wall_s": test.wall_s,
    }
