"""One comparison that another place measures."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import fields

from playground.config import Config
from playground.domain.errors import WorkFailed
from playground.domain.record.run import Run
from playground.domain.spec.case import Case
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.budget import BESIDE
from playground.engine.pool import Pool
from playground.store import History
from playground.store.transfer import record_of
from playground.workers import RUNS

from ..comparison import Comparison
from ..failure import as_message
from .place import Place

logger = logging.getLogger(__name__)
# What is this host's own about a run, wherever it was measured.
OURS = ("id", "created_at", "preset", "sweep_id", "earlier", "status")


class ComparisonElsewhere(Comparison):
    """Nothing of it is written before its document has come: a host that dies meanwhile measures it again.

    `lost`: no document came, so that another place may try.
    """

    def __init__(
        self,
        place: Place,
        config: Config,
        pool: Pool,
        history: History,
        case: Case,
        preset: str | None,
        sweep_id: str,
    ) -> None:
        super().__init__(config, pool, history, case.sides, case.workload, case.measurement, preset, sweep_id)
        self.lost = False
        self.place = place
        self._case = case
        self._stop = asyncio.Event()

    def check_runtimes(self) -> None:
        """Does nothing: this host needs no vLLM."""

    async def execute(self) -> None:
        self.live.phase = "measuring"
        try:
            text = await self.place.measure(self._case.model_dump_json(), self._stop, self._longest_s)
            run = await RUNS.run(self._read, text)
            for field in fields(Run):
                if field.name not in OURS:
                    setattr(self.run, field.name, getattr(run, field.name))
            status = run.status
            self.live.starts_s = max((side.ready_after_s or 0.0 for side in run.sides), default=None)
        except asyncio.CancelledError:
            self.lost, status = True, "stopped"
            raise
        except Exception as error:
            logger.exception("run %s brought nothing from %s", self.run.id, self.place.name)
            self.run.problem = as_message(error, self.run.id)
            self.lost, status = True, "stopped" if self._stop.is_set() else "failed"
        finally:
            self.run.status, self.live.phase = status, "finished"

    async def keep(self) -> None:
        """Write it to the history, as a whole."""
        await self.saving.finish(self.run)

    @property
    def _longest_s(self) -> float:
        """Seconds after which it hangs: every engine's start in turn, the rounds, what follows them."""
        engines = sum(isinstance(side.engine, EngineSettings) for side in self._case.sides)
        rounds_s = (1 + BESIDE) * self._case.measurement.budget_s + self._config.request_timeout_s
        return (1 + engines) * self._config.start_timeout_s + rounds_s

    def _read(self, text: str) -> Run:
        """Raises WorkFailed for a document of something else than what was to be measured."""
        run = record_of(text, self.place.name)
        planned_work = (self.run.workload, self.run.measurement, len(self.run.sides))
        if not isinstance(run, Run) or (run.workload, run.measurement, len(run.sides)) != planned_work:
            raise WorkFailed("elsewhere.other", place=self.place.name)
        for side, planned in zip(run.sides, self.run.sides, strict=True):
            # There it may say the version; a sweep's points agree in their labels.
            side.label = planned.label
        return run

    def stop(self) -> None:
        self._stop.set()
