"""One comparison, from settings to a stored run. It runs as a separate task; pages only read it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median

from playground import prompts
from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.limit_checks import check_run
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord, Status
from playground.domain.spec.case import Side
from playground.domain.spec.difference import with_version
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Workload
from playground.engine import devices
from playground.engine.pool import Pool
from playground.i18n import say_message
from playground.models import folders
from playground.models.tokenizer import tokenizer
from playground.prompts import PromptSet
from playground.store import History
from playground.workers import RUNS, abandoned

from .checks import harness
from .expected import earlier_starts
from .failure import as_message
from .live import Live, RunProgress
from .measured import Measured
from .race import Race
from .saving import Saving
from .session import RunSession
from .sides import placement
from .sides.engine_start import prepare
from .sides.served_side import ServedSide

logger = logging.getLogger(__name__)


def new_run_id(now: datetime) -> str:
    """An id that sorts by time and is short enough to be read out."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


class Comparison:
    """A race, or with a `measurement` a measured run."""

    def __init__(
        self,
        config: Config,
        pool: Pool,
        history: History,
        sides: Sequence[Side],
        workload: Workload,
        measurement: Measurement | None = None,
        preset: str | None = None,
        sweep_id: str | None = None,
        files: dict[str, PromptSet] | None = None,
        earlier: Run | None = None,
    ) -> None:
        """`earlier`: the run that it repeats. `files`: the prompts of files that were read already, by their
        paths; what is read now is added."""
        now = datetime.now().astimezone()
        self.run = Run(
            id=new_run_id(now),
            created_at=now.isoformat(timespec="seconds"),
            mode="measured" if measurement else "race",
            workload=workload,
            measurement=measurement,
            preset=preset,
            sweep_id=sweep_id,
            earlier=earlier.id if earlier else None,
            sides=[SideRecord(side.label, side.engine, profile=side.profile) for side in sides],
            seed=workload.sampling.seed,
        )
        self.earlier = earlier
        self.live = Live(self.run, [RunProgress() for _ in sides])
        # Who started it: a visitor's name, or nobody's for the host.
        self.owner = ""
        self._config = config
        self._pool = pool
        self._history = history
        self.saving = Saving(history, self.run.id)
        self._prompts: PromptSet | None = None
        self._files = {} if files is None else files
        self._session: RunSession | None = None
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def title(self) -> str:
        """The labels of the sides, shown to the host's other visitors while this comparison uses the engines."""
        return " / ".join(side.label for side in self.run.sides)

    @property
    def finished(self) -> bool:
        return self.run.status != "running"

    @property
    def record(self) -> Run:
        """What is saved of it."""
        return self.run

    @property
    def unsaved(self) -> Message | None:
        """Why it could not be saved, if so."""
        return self.saving.problem

    def check(self) -> None:
        """Raises InvalidInput for what is impossible, or what this host does not allow. Nothing has started
        then."""
        check_run(self._config.limits, self.run)
        placement.check_allowed(self._config, self.run)
        plan = self.run.measurement
        if plan is None:
            return
        if self.run.workload.objective == "goodput" and not plan.limits.is_set:
            raise InvalidInput("measurement.goodput_needs_limits")
        harness.check(plan.harness)
        if isinstance(plan.prompts, SyntheticPrompts):
            self._check_length(plan.prompts.input_tokens)
        else:
            # Read now: an uploaded file may be gone when the run's turn comes.
            file = plan.prompts or ""
            self._prompts = self._files.get(file) or self._resolved(plan)
            if file:
                self._files[file] = self._prompts
            if file not in prompts.names():
                self.run.prompts = self._prompts.read

    def check_runtimes(self) -> None:
        """Raises InvalidInput for what a side's runtime lacks, and puts versions into labels that name runtimes.
        Blocking: probes each runtime."""
        sides = self.run.sides
        probed = placement.check_runtimes(self._config, [(side.label, side.settings) for side in sides])
        labels = [
            with_version(side.label, side.settings.runtime, probed[side.settings.runtime].version)
            if isinstance(side.settings, EngineSettings) and probed[side.settings.runtime].kind is None
            else side.label
            for side in sides
        ]
        # Two builds of one version are told apart by the runtimes' names.
        if len(set(labels)) == len(labels):
            for side, label in zip(sides, labels, strict=True):
                side.label = label

    def _check_length(self, tokens: int) -> None:
        """Check the length of synthetic prompts where the limit is known, since making long ones takes long."""
        for side in self.run.sides:
            longest = side.settings.knobs.max_model_len if isinstance(side.settings, EngineSettings) else None
            if isinstance(longest, int) and tokens >= longest:
                raise InvalidInput("measurement.too_long", side=side.label, tokens=tokens, longest=longest)

    async def execute(self) -> None:
        """Run it to its end, under the pool's lease. `run.status` and `problem` then hold the outcome."""
        status: Status = "failed"
        try:
            await self.saving.begin(self.run, self.owner)
            if not self._stopping:
                self._task = asyncio.current_task()
                if self.run.measurement is not None:
                    # Done only now: it occupies a processor for seconds, which another measurement may have been
                    # using.
                    await harness.check_tasks(self.run.measurement.harness)
                self.live.usual_start_s = await RUNS.run(self._usual_start_s)
                served_sides = await prepare(self._config, self._pool, self.live)
                self._session = await RUNS.run(self._new_session, served_sides)
                await self._session.execute()
            status = "stopped" if self._stopping else "done"
        except asyncio.CancelledError:
            status = "stopped"
            if not self._stopping:
                raise
        except PlaygroundError as error:
            # What users meet needs no traceback.
            logger.warning("run %s failed: %s", self.run.id, say_message(error))
            self.run.problem = self.run.problem or as_message(error, self.run.id)
        except Exception as error:
            # The edge of the application: no error in a run may end the page.
            logger.exception("run %s failed", self.run.id)
            self.run.problem = self.run.problem or as_message(error, self.run.id)
        finally:
            try:
                # Written before `finished` is set: whoever sees a finished run finds it in the history.
                await asyncio.shield(self._finish(replace(self.run, status=status)))
            finally:
                self.run.status, self.live.phase = status, "finished"

    def _usual_start_s(self) -> float | None:
        """The median of this host's earlier starts."""
        starts = earlier_starts(self._history, "cuda" if devices.machine().gpus else "cpu")
        return median(starts) if starts else None

    def _new_session(self, served_sides: Sequence[ServedSide]) -> RunSession:
        plan = self.run.measurement
        if plan is None:
            return Race(self._config, self.saving, self.live, served_sides)
        resolved = self._prompts or self._resolved(plan)
        return Measured(self._config, self.saving, self.live, served_sides, plan, resolved.prompts)

    def _resolved(self, plan: Measurement) -> PromptSet:
        workload = self.run.workload
        targets = [side.settings.target for side in self.run.sides if isinstance(side.settings, EngineSettings)]
        folder = folders.local_folder(self._config, targets[0]) if targets else None
        return prompts.of_measurement(
            plan,
            workload,
            workload.sampling.seed or 0,
            tokenizer(folder),
            self._config.limits,
            stopped=abandoned,
        )

    async def _finish(self, run: Run) -> None:
        await self.saving.finish(run)
        self.run.problem = self.run.problem or self.saving.problem

    def refuse(self, error: Exception) -> None:
        """End it before it began, most likely because another run is using the engines."""
        self.run.problem = as_message(error, self.run.id)
        self.run.status, self.live.phase = "failed", "finished"

    def stop(self) -> None:
        """End it now and keep what arrived: stop the streams if they run, else the preparation."""
        if self._stopping:
            return
        self._stopping = True
        if self._task is None:
            # Still waiting in line, or just begun: nothing has to be ended yet.
            self.run.status, self.live.phase = "stopped", "finished"
        elif self._session is not None:
            self._session.stop()
        else:
            self._task.cancel()
