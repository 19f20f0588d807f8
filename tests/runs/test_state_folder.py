"""A state folder that fills up, or is exchanged, while the playground runs: a sentence, and the run's row."""

from __future__ import annotations

import errno
import os
from typing import Any, NoReturn

import pytest
from support.races import SIDES, raced, workload

from playground import private_files
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.i18n import LOCALES, say_message
from playground.processes import Guarded
from playground.runs.host import MOST_LOGS, Host


def full(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def said_full(*_: object, **__: object) -> NoReturn:
    raise InvalidInput(
        "private.unusable", path="/s", variable="PLAYGROUND_STATE", detail="No space left on device"
    )


@pytest.mark.parametrize(("name", "how"), [("fresh_file", full), ("check_space", said_full)])
async def test_a_disk_that_fills_up(host: Host, monkeypatch: pytest.MonkeyPatch, name: str, how: object) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(private_files, name, how)
        comparison = await raced(host)
    run = host.history.get(comparison.run.id)
    assert run is not None
    assert run.status == "failed"
    for side in run.sides:
        assert side.problem is not None
        for locale in LOCALES:
            assert os.strerror(errno.ENOSPC) in say_message(side.problem, locale)
    # With space again, all goes on.
    assert (await raced(host)).run.status == "done"


async def test_a_folder_that_somebody_opened(host: Host) -> None:
    host.config.state.chmod(0o777)
    with pytest.raises(PlaygroundError) as caught:
        await host.start(host.comparison(SIDES, workload()), "a test")
    assert caught.value.message_id == "private.open"
    host.config.state.chmod(0o700)


@pytest.mark.parametrize("whole", [True, False])
async def test_a_folder_that_is_tidied_between_two_runs(host: Host, whole: bool) -> None:
    """The engines run on, and can't be reached any more: others take their place."""
    await raced(host)
    for entry in host.config.state.iterdir():
        entry.unlink()
    if whole:
        host.config.state.rmdir()
    assert (await raced(host)).run.status == "done"


async def test_a_log_that_is_tidied_while_its_engine_starts(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Guarded.start

    def start_and_tidy(*args: Any, **kwargs: Any) -> Guarded:
        started = start(*args, **kwargs)
        started.log.unlink()
        return started

    monkeypatch.setattr(Guarded, "start", start_and_tidy)
    assert (await raced(host)).run.status == "done"


def test_the_latest_logs_are_kept(host: Host) -> None:
    logs = [host.config.state / f"{number}.log" for number in range(MOST_LOGS + 2)]
    for age, log in enumerate(reversed(logs)):
        log.write_text("a log")
        os.utime(log, (1_000_000 - age, 1_000_000 - age))
    host.tidy_up()
    assert sorted(host.config.state.glob("*.log")) == sorted(logs[2:])
