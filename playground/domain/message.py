"""Messages to users, before they are rendered in a language."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence by its id in messages/*.toml, with parameters; `i18n.py` renders it in a language."""

    message_id: str
    params: dict[str, object] = field(default_factory=dict)


class Section(Enum):
    """A part of the page's form that belongs to no side. The value is the message id of its name."""

    PROMPT = "ui.prompt"
    MEASUREMENT = "ui.measurement"
    SWEEP = "ui.tab_sweep"


# The place of an invalid value: a side's or a file's name, a message that names it, or a section of the form.
Where = str | Message | Section
