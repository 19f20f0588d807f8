"""The input of one comparison: sides, workload, measurement."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from playground.domain.spec.fields import Frozen
from playground.domain.spec.settings import SideSettings

from .load_profile import LoadProfile
from .measurement import Measurement
from .workload import Workload

LEAST_SIDES, MOST_SIDES = 2, 4


class Side(Frozen):
    """A label and its engine or endpoint. `profile`: how its load is sent, where that is what the sides differ in;
    None: as the measurement says."""

    label: Annotated[str, Field(min_length=1)]
    engine: SideSettings
    profile: LoadProfile | None = None


class Case(Frozen):
    """The input of one comparison: its sides, their workload, and how it is measured."""

    sides: tuple[Side, ...]
    workload: Workload
    measurement: Measurement
