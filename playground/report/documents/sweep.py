"""The documents of a sweep and of its plan: what `playground.report.sweep` builds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.record.run import Status
from playground.domain.spec.change import Value
from playground.domain.spec.workload import Objective

from .comparison import MachineDocument, NoMachineDocument
from .parts import (
    ClaimDocument,
    Interval,
    MessageDocument,
    SchemaVersion,
    SideFiguresDocument,
    VerdictDocument,
    dumped,
)


class KnobDocument(TypedDict):
    name: str
    side: str | None
    """null: every side that has the knob, or the workload."""
    values: list[Value]


class PredictionDocument(TypedDict):
    kind: Literal["fit", "band"]
    speed_up: float | None
    """null for a band"""
    interval: Interval | None


class PointDocument(TypedDict):
    values: dict[str, Value]
    """By the knob as it is typed."""
    run_id: str | None
    """null: not measured yet."""
    sides: dict[str, SideFiguresDocument]
    predicted: dict[str, PredictionDocument]
    """By side: the speed-up that the other points make likely."""
    verdicts: list[VerdictDocument]
    problem: MessageDocument | None
    node: NotRequired[str]
    """The machine that measured it, where that was another one."""


class NodeRatioDocument(TypedDict):
    ratio: float
    """How fast the side is there, over how fast it is on the first; above 1: faster."""
    interval: Interval | None
    """95%; null: too few rounds."""


class NodeDocument(TypedDict):
    """A machine against the first, both at the sweep's first point."""

    node: str
    first: str
    pooled: bool
    """False: its points are left out of what is concluded from several."""
    ratios: dict[str, NodeRatioDocument]
    """By side; empty: it has no measurement of the first point."""


class RecommendedDocument(TypedDict):
    values: dict[str, Value] | Literal["off"] | None
    side: str | None
    reason: str
    schedule: NotRequired[list[list[int]]]
    """num_speculative_tokens_per_batch_size: [first, last, k] of the batch's size, where k depends on it."""


class HighestLoadDocument(TypedDict):
    """The highest load at which nine in ten of a side's requests keep each limit, in the swept knob's unit."""

    side: str
    load: float | None
    """null: outside the loads that were measured, or too few rounds."""
    interval: Interval | None
    at_least: float | None
    """A load that was kept in every round."""
    below: float | None
    """A load that was kept in none."""
    ratio: float | None
    """To the first side's."""
    ratio_interval: Interval | None


class SweepDocument(TypedDict):
    """`sweep`: one comparison a point."""

    schema: SchemaVersion
    run_id: str
    created_at: str
    status: Status
    """interrupted: the playground's process ended during the run."""
    preset: str | None
    objective: Objective
    search: bool
    """True: looks for the best values; most points are never measured."""
    synthetic: bool
    """True: the engine accepted a prescribed share of drafts; the speed is real, the text means nothing."""
    plan: NotRequired[dict[str, Any]]
    """As a preset's `sweep`. It, `case`, `machine` and `versions` are absent in older documents."""
    case: NotRequired[dict[str, Any]]
    """What the sweep started from, as a preset's `sides`, `workload` and `measurement`."""
    machine: NotRequired[Annotated[Mapping[str, object], dumped(MachineDocument | NoMachineDocument)]]
    versions: NotRequired[dict[str, str]]
    """vLLM's version by side, where it is known."""
    knobs: Annotated[list[KnobDocument], Field(min_length=1, max_length=4)]
    points: list[PointDocument]
    recommended: RecommendedDocument
    highest_load: NotRequired[list[HighestLoadDocument]]
    """Of a sweep of concurrency or requests_per_s alone, with limits. Absent in older documents."""
    nodes: NotRequired[list[NodeDocument]]
    """Of points that several machines measured, each but the first."""
    prediction_error: str | None
    claim: ClaimDocument | None
    problem: MessageDocument | None
    record: NotRequired[dict[str, Any]]
    """In a file only: all that the history keeps, which `import` reads."""


class SweepPlanDocument(TypedDict):
    """`sweep --plan`: what it will take at most."""

    schema: SchemaVersion
    points: int
    fitting: int
    """How many of them there is time for."""
    engine_starts: int
    start_s: float
    known_starts: int
    """Earlier starts on this host that start_s is the median of; 0: a rule of thumb."""
    point_s: float
    total_s: float
