"""The records of a run. Figures are derived from them, never stored.

Trials and samples count their milliseconds from the run's start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.case import Side
from playground.domain.spec.difference import without_version
from playground.domain.spec.engines import versioned
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings, SideSettings
from playground.domain.spec.workload import Workload

from .counters import Counters, Sample
from .engine_path import EnginePath
from .evidence import AccuracyEvidence, HarnessEvidence, OutputEvidence
from .figures import SideFigures
from .prompts import PromptsRead
from .reported import Reported
from .traces import RequestTrace

# imported: another tool measured it.
Mode = Literal["race", "measured", "imported"]
Status = Literal["running", "done", "stopped", "failed", "interrupted"]


# What a million tokens of a prompt and of an answer cost, by the host's configuration.
TokenPrices = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """What is left of a trial whose requests were not kept: how many there were, and the objective's figure."""

    requests: int
    value: float | None


@dataclass(slots=True)
class Trial:
    """The workload sent once to one side: in a race the only one, else the side's part of a round.

    `before` and `after` are counters taken while the engine was idle, else None. `complete`: every request of it
    was sent and has ended by itself. `energy_j`: what the side's GPUs took from the first send to the last byte,
    in joules; None where that is unknown, or where others used the cards. `limited`: how often the endpoint
    refused a request for its rate limit, which was then sent again. `summary`: only a recording has one, in the
    place of its requests.
    """

    round: int = 0
    started_ms: float = 0.0
    requests: list[RequestTrace] = field(default_factory=list)
    before: Counters | None = None
    after: Counters | None = None
    complete: bool = False
    energy_j: float | None = None
    limited: int = 0
    summary: TrialSummary | None = None

    @property
    def sent(self) -> int:
        """How many requests there were."""
        return self.summary.requests if self.summary is not None else len(self.requests)


@dataclass(frozen=True, slots=True)
class StartStage:
    """A stage of an engine's start, by its message id's last part under `stage.`, and how long it took."""

    stage: str
    seconds: float


@dataclass(slots=True)
class SideRecord:
    """One side of a run. `profile`: how its load was sent, if not as the measurement says. `missing`: what an
    attached endpoint does not know or refuses, by the names of the fields that ask for it. `ready_after_s`: how
    long its engine took to start; None if it ran already; `start`: its stages. `path`: what it says of how it
    works. `figures`: only a recording or an imported run has them, for what its requests do not tell."""

    label: str
    settings: SideSettings
    command: str = ""
    runtime_version: str | None = None
    device: str | None = None
    placement: str = ""
    contended: bool = True
    profile: LoadProfile | None = None
    ready_after_s: float | None = None
    start: tuple[StartStage, ...] = ()
    path: EnginePath | None = None
    missing: tuple[str, ...] = ()
    token_prices: TokenPrices | None = None
    trials: list[Trial] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    problem: Message | None = None
    log_tail: list[str] = field(default_factory=list)
    figures: SideFigures | None = None
    reported: Reported | None = None

    @property
    def lasting_label(self) -> str:
        """The label, without a version that its runtime may have no longer."""
        if isinstance(self.settings, AttachedEndpoint) or self.runtime_version is None:
            return self.label
        return without_version(self.label, self.settings.runtime, self.runtime_version)

    @property
    def engine(self) -> str | None:
        """The engine and its version, as "vLLM 0.32.0"; None where it is not known."""
        if not isinstance(self.settings, EngineSettings) or not self.runtime_version:
            return self.runtime_version and f"vLLM {self.runtime_version}"
        return versioned(self.settings.runtime, self.runtime_version)

    @property
    def cards(self) -> int:
        """How many GPUs it takes; 1 where it takes none."""
        return self.settings.gpus if self.device == "cuda" and isinstance(self.settings, EngineSettings) else 1

    @property
    def requests(self) -> list[RequestTrace]:
        """The requests of all trials, in order."""
        return [trace for trial in self.trials for trace in trial.requests]


@dataclass(slots=True)
class Run:
    """What the history keeps of a comparison. `measurement` is None for a race; `sweep_id` names the sweep that it
    is a point of; `earlier` the run that it repeats; `prompts` tells what was read of a prompts file."""

    id: str
    created_at: str
    mode: Mode
    workload: Workload
    sides: list[SideRecord]
    measurement: Measurement | None = None
    preset: str | None = None
    sweep_id: str | None = None
    earlier: str | None = None
    status: Status = "running"
    machine: dict[str, object] = field(default_factory=dict)
    seed: int | None = 0
    problem: Message | None = None
    outputs: OutputEvidence | None = None
    accuracy: AccuracyEvidence | None = None
    harness: HarnessEvidence | None = None
    prompts: PromptsRead | None = None

    @property
    def settings(self) -> tuple[Side, ...]:
        """What its sides were started from."""
        return tuple(
            Side(label=side.lasting_label, engine=side.settings, profile=side.profile) for side in self.sides
        )

    @property
    def title(self) -> str:
        """A short title: the prompt, or the name of the prompt set or file."""
        prompts = self.measurement.prompts if self.measurement is not None else None
        if isinstance(prompts, SyntheticPrompts):
            return f"{prompts.count} x {prompts.input_tokens} tokens"
        return prompts.rsplit("/", 1)[-1] if prompts is not None else self.workload.prompt
