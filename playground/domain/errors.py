"""The exception tree. An error that users may read holds the id of a sentence in messages/*.toml, with parameters.

PlaygroundError
├── InvalidInput        the user can correct it: exit code 2
└── WorkFailed          the work could not be done: exit code 1
    ├── ModelUnavailable
    ├── EngineFailed    carries the last lines of the engine's log
    └── HostBusy        another run holds the engines
"""

from __future__ import annotations

from .message import Message


class PlaygroundError(Exception):
    """An error to show the user: `message_id` names a sentence of messages/*.toml, `params` fill it in. `further`:
    what else is wrong with the same input."""

    exit_code = 1

    def __init__(self, message_id: str, **params: object) -> None:
        super().__init__(message_id, params)
        self.message_id = message_id
        self.params = params
        self.further: tuple[PlaygroundError, ...] = ()

    @property
    def all(self) -> tuple[PlaygroundError, ...]:
        """Itself, and what else is wrong."""
        return (self, *self.further)

    def as_message(self) -> Message:
        """The error as a message that a record can keep."""
        return Message(self.message_id, self.params)


class InvalidInput(PlaygroundError):
    """A setting, preset, prompt or flag that can't be used as given."""

    exit_code = 2


class WorkFailed(PlaygroundError):
    """The input was fine and the work still failed."""


class ModelUnavailable(WorkFailed):
    """A model could not be found, fetched or converted."""


class EngineFailed(WorkFailed):
    """An engine did not start, or died. `log_tail` holds its last log lines, oldest first."""

    def __init__(self, message_id: str, log_tail: list[str], **params: object) -> None:
        super().__init__(message_id, **params)
        self.log_tail = log_tail


class HostBusy(WorkFailed):
    """The host's one lease is held by another run (`holder` and `since` are among the parameters)."""
