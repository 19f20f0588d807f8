"""Writes a run to the history as it proceeds."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import ParamSpec

from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.domain.record.run import Run, Trial
from playground.domain.record.traces import RequestTrace
from playground.store import WRITERS, History

logger = logging.getLogger(__name__)
P = ParamSpec("P")


def not_saved(error: Exception, saved_id: str) -> Message:
    """What is said of a run or sweep that could not be written because of this error."""
    if isinstance(error, PlaygroundError):
        return Message("run.unsaved", {"cause": error.as_message()})
    return Message("run.not_saved", {"run": saved_id})


class Saving:
    """A history that can't be used ends no run. After the first failure the run is written at its end, as a whole;
    `problem` says why it was not saved, if that fails, too."""

    def __init__(self, history: History, run_id: str) -> None:
        self.problem: Message | None = None
        self._locked = False
        self._history = history
        self._run_id = run_id

    async def begin(self, run: Run, owner: str) -> None:
        """Write the run and its sides as they stand."""
        await self._tried(self._history.begin, run, owner)

    async def trial(self, position: int, trial: Trial, requests: Mapping[int, RequestTrace]) -> None:
        """Write the trial as it stands, with these of its requests, by their number in it."""
        if self.problem is None:
            await self._tried(self._history.save_trial, self._run_id, position, trial, requests)

    async def finish(self, run: Run) -> None:
        """Write the run as it ended."""
        await self._tried(self._history.finish, run)
        if self.problem is not None and not self._locked:
            # What was written before is not under way any more.
            with contextlib.suppress(PlaygroundError):
                await WRITERS.run(self._history.give_up, run.id, self.problem)

    async def _tried(self, write: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            await WRITERS.run(write, *args, **kwargs)
        except Exception as error:
            logger.exception("run %s could not be saved", self._run_id)
            self.problem = not_saved(error, self._run_id)
            self._locked = isinstance(error, PlaygroundError) and error.message_id == "history.locked"
        else:
            self.problem = None
