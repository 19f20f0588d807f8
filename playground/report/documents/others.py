"""The smaller documents: a load test, a check of the machine, what a run will take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.record.figures import Count, NotNegative
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


class ComparePlanDocument(TypedDict):
    """compare --plan --json: what it will take, starts included."""

    schema: SchemaVersion
    engine_starts: Count
    starts_s: NotNegative
    """Until all engines are ready."""
    known_starts: Count
    """Earlier starts on this host that it is by; 0: a rule of thumb."""
    round_s: NotNegative | None
    """A round, by the last measurement of the same on this host; null: there is none."""
    rounds: Count | None
    """How many rounds the budget has time for."""
    least_s: NotNegative | None
    """A measurement to its sixth round, the fewest that give an interval, or to its budget's end before that."""
    most_s: NotNegative
    """A measurement that ends with its budget."""


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
