"""One side of a run as the rules see it, and the findings that they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from playground.domain.message import Message
from playground.domain.record.counters import Counters
from playground.domain.record.figures import SideFigures
from playground.domain.record.metrics import Acceptance, acceptance_of, side_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Objective
from playground.domain.stats.rounds import Round
from playground.domain.stats.verdicts import Verdict, compare

SPECULATION_OFF = Change("speculation", "off")


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement about a side. `change`: the remedy, where it is one setting of that side."""

    rule: str
    side: str
    evidence: Message
    meaning: Message
    remedy: Message
    change: Change | None = None

    @property
    def sentences(self) -> tuple[Message, Message, Message]:
        """What was seen, what it means, what to do."""
        return self.evidence, self.meaning, self.remedy


class SideView:
    """A side of a run, with the values that more than one rule needs. Trials that were cut off are left out."""

    def __init__(self, run: Run, side: SideRecord, rounds: Callable[[Objective], list[Round]]) -> None:
        self.run = run
        self.label = side.label
        self.rounds = rounds
        self.record = replace(side, trials=[trial for trial in side.trials if trial.complete])
        self.profile = side.profile or (run.measurement.profile if run.measurement else None)
        self.engine = side.settings if isinstance(side.settings, EngineSettings) else None

    def finding(
        self, rule: str, params: Mapping[str, object], change: Change | None = None, remedy: str = "do"
    ) -> Finding:
        """A finding whose sentences are the rule's `_seen`, `_means` and `_do`, or another remedy in place of the
        last."""
        params = {"side": self.label, **params}
        seen, means, do = (Message(f"finding.{rule}_{part}", dict(params)) for part in ("seen", "means", remedy))
        return Finding(rule, self.label, seen, means, do, change)

    @property
    def requests(self) -> list[RequestTrace]:
        return self.record.requests

    @cached_property
    def figures(self) -> SideFigures:
        return side_figures(self.record)

    @cached_property
    def acceptance(self) -> Acceptance | None:
        return acceptance_of(self.record.trials)

    @cached_property
    def busy(self) -> list[Counters]:
        """Samples taken while something ran."""
        return [sample.counters for sample in self.record.samples if sample.counters.running]

    @cached_property
    def plain(self) -> str | None:
        """The label of the side that differs from this one only by having no speculation."""
        if self.engine is None or not self.engine.speculates:
            return None
        alike = SPECULATION_OFF.apply(self.engine), self.record.profile
        return next((side.label for side in self.run.sides if (side.settings, side.profile) == alike), None)

    def against_plain(self, objective: Objective) -> Verdict | None:
        """The verdict on speculation by this figure; None without a side to compare with, or without an
        interval."""
        if self.plain is None:
            return None
        values = [completed.values for completed in self.rounds(objective)]
        verdict = compare(values, self.label, self.plain, objective)
        return verdict if verdict.interval is not None else None
