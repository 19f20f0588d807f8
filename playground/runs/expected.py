"""How long a run will take on this host, by those before it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from playground.domain.errors import PlaygroundError
from playground.domain.spec.case import Case
from playground.domain.spec.measurement import MIN_ROUNDS, Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.sweep.budget import BESIDE, START_S
from playground.domain.sweep.order import engines_of
from playground.engine.devices import Machine
from playground.i18n import say_message
from playground.store import History

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expected:
    """`starts_s`: seconds until the `starts` engines that do not run yet are ready, by the median of
    `known_starts` earlier ones here, or a rule of thumb if that is 0. `round_s`: seconds of a round, by the last
    measurement of the same here; None: there is none."""

    starts: int
    starts_s: float
    known_starts: int
    round_s: float | None
    measurement: Measurement

    @property
    def rounds(self) -> int | None:
        """How many rounds there is time for; None: not known."""
        if self.round_s is None:
            return None
        return max(1, min(self.measurement.max_rounds, int(self.measurement.budget_s / self.round_s)))

    @property
    def needed_s(self) -> float | None:
        """Seconds of the fewest rounds that give an interval."""
        return None if self.round_s is None else MIN_ROUNDS * self.round_s

    @property
    def least_s(self) -> float | None:
        """Seconds of a measurement to the fewest rounds that give an interval, or to its budget's end."""
        if self.needed_s is None:
            return None
        return self.starts_s + (1 + BESIDE) * min(self.needed_s, self.measurement.budget_s)

    @property
    def most_s(self) -> float:
        """Seconds of a measurement from the press to the budget's end and the checks after it."""
        return self.starts_s + (1 + BESIDE) * self.measurement.budget_s


def expected(history: History, host: Machine, case: Case, running: Counter[EngineSettings]) -> Expected:
    """`running`: engines that need no start. Blocking: reads the history, and none of it if it can't be read."""
    missing = [*(engines_of(case) - running).elements()]
    device = "cuda" if host.gpus else "cpu"
    known = earlier_starts(history, device)
    each_s = median(known) if known else START_S[device]
    at_once = not missing or not host.gpus or not _in_turn(missing, host)
    starts_s = each_s * (min(1, len(missing)) if at_once else len(missing))
    round_s = earlier_round(history, host, case)
    return Expected(len(missing), starts_s, len(known), round_s, case.measurement)


def _in_turn(engines: Sequence[EngineSettings], host: Machine) -> bool:
    """Whether vLLM will size their KV caches by what it finds free, as far as the settings say."""
    shared = sum(engine.gpus for engine in engines) > len(host.gpus)
    return shared and any(engine.knobs.gpu_memory_utilization or engine.extra_flags for engine in engines)


def earlier_round(history: History, host: Machine, case: Case) -> float | None:
    """Seconds of a round by the last measurement of the same here; None if there is none that can be read."""
    try:
        trial_s = history.trial_seconds(case, host.as_record())
    except PlaygroundError as error:
        logger.warning("earlier rounds are unknown: %s", say_message(error))
        return None
    return None if trial_s is None else trial_s * len(case.sides)


def earlier_starts(history: History, device: str) -> list[float]:
    """Seconds of the last starts on this kind of device ("cpu" or "cuda"); none if the history can't be read."""
    try:
        return history.start_seconds(device)
    except PlaygroundError as error:
        logger.warning("earlier starts are unknown: %s", say_message(error))
        return []
