"""One setting changed: what a remedy proposes, and what a sweep varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import SpeculationOff

Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A dotted key of a side's engine settings, such as "knobs.max_num_seqs", and its new value.

    None: the engine's own default. "speculation" = "off" switches speculation off, whatever its method was.
    """

    key: str
    value: Value

    def apply(self, settings: EngineSettings) -> EngineSettings:
        """The settings with this change. Raises pydantic's ValidationError where they do not allow it."""
        if self.key == "speculation" and self.value == "off":
            return settings.model_copy(update={"speculation": SpeculationOff()})
        return EngineSettings.model_validate(replaced(settings.model_dump(), self.key.split("."), self.value))


def replaced(values: Mapping[str, Any], path: list[str], value: Value) -> dict[str, Any]:
    """A copy of nested mappings with one entry replaced; a key that is not there yet is added."""
    first, *rest = path
    return {**values, first: replaced(values.get(first) or {}, rest, value) if rest else value}
