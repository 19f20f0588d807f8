"""What a run keeps of the exception that ended it."""

from __future__ import annotations

import subprocess

import pytest

from playground.domain.errors import WorkFailed
from playground.i18n import say_message
from playground.runs.failure import as_message


@pytest.mark.parametrize(
    ("error", "message_id"),
    [
        (WorkFailed("load.nothing_sent"), "load.nothing_sent"),
        (subprocess.CalledProcessError(1, "driver"), "run.driver_died"),
        (subprocess.CalledProcessError(-4, "driver"), "run.driver_killed"),
        (ValueError("a mistake of ours"), "run.internal"),
    ],
)
def test_what_is_kept_of_an_exception(error: Exception, message_id: str) -> None:
    message = as_message(error, "20300101-000000-abcd")
    assert message.message_id == message_id
    assert say_message(message)


def test_a_driver_ended_by_a_signal_names_it() -> None:
    assert "SIGILL" in say_message(as_message(subprocess.CalledProcessError(-4, "driver"), "r"))
