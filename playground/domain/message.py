"""A sentence to be said: its id in `i18n.py`, with parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class Message:
    """Why something ended early: a message id of `text.py` with its parameters."""

    message_id: str
    params: dict[str, object] = field(default_factory=dict)


class Section(Enum):
    """A part of the page's form that belongs to no side. The value is the message id of its name."""

    PROMPT = "ui.prompt"
    MEASUREMENT = "ui.measurement"
    SWEEP = "ui.tab_sweep"


# Where something that can't be used stands: a side's or a file's name, what else it is called, or a section.
Where = str | Message | Section
