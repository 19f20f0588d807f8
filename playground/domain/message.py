"""A sentence to be said: its id in `i18n.py`, with parameters."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Message:
    """Why something ended early: a message id of `text.py` with its parameters."""

    message_id: str
    params: dict[str, object] = field(default_factory=dict)
