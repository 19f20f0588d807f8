"""What a run leaves behind: raw timings and counters. Figures are derived from these, never stored.

Times are milliseconds. A request's chunk times count from its own `t_send`, its `sent_ms` from its trial's start;
trials and samples count from the run's start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .measurement import Measurement, SyntheticPrompts
from .settings import SideSettings
from .workload import Conversation, LoadProfile, Workload

Mode = Literal["race", "measured"]
Status = Literal["running", "done", "stopped", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One token-bearing piece of a streamed answer.

    `tokens` is None where the endpoint gives no count on the way; `token_ids` is None where it gives no ids.
    """

    ms: float
    tokens: int | None
    text: str
    token_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something ended early: a message id of `text.py` with its parameters."""

    message_id: str
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepArrays:
    """The engine's own account of one request's verification steps, in order.

    Steps in which nothing was drafted are absent. Accepted counts include tokens past a stop.
    """

    accepted: tuple[int, ...]
    drafted: tuple[int, ...]


@dataclass(slots=True)
class RequestTrace:
    """One request as it happened. `output_tokens` and `prompt_tokens` are the endpoint's own final usage."""

    conversation: Conversation
    sent_ms: float = 0.0
    chunks: list[Chunk] = field(default_factory=list)
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    steps: StepArrays | None = None
    problem: Problem | None = None
    ended: bool = False

    @property
    def output_text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks)

    @property
    def token_ids(self) -> list[int] | None:
        """All token ids, or None if any chunk came without them."""
        ids: list[int] = []
        for chunk in self.chunks:
            if chunk.token_ids is None:
                return None
            ids.extend(chunk.token_ids)
        return ids

    @property
    def counted_tokens(self) -> int | None:
        """Tokens that arrived, by chunk counts; else the final usage; else None."""
        counts = [chunk.tokens for chunk in self.chunks]
        if None in counts:
            return self.output_tokens
        return sum(count for count in counts if count is not None)


@dataclass(frozen=True, slots=True)
class Counters:
    """The engine's counters and gauges at one moment, and its GPUs' as whole cards. None: not reported."""

    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    generation_tokens: int | None = None
    preemptions: int | None = None
    prefix_cache_queries: int | None = None
    prefix_cache_hits: int | None = None
    gpu_utilization: float | None = None
    gpu_memory_bytes: int | None = None

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits: counters are complete."""
        return self.running == 0 and self.waiting == 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters `ms` after the run's start."""

    ms: float
    counters: Counters


@dataclass(slots=True)
class Trial:
    """The workload sent once to one side: in a race the only one, else the side's part of a round.

    `before` and `after` are counters taken while the engine was idle, else None. `complete`: every request of it
    was sent and has ended by itself.
    """

    round: int = 0
    started_ms: float = 0.0
    requests: list[RequestTrace] = field(default_factory=list)
    before: Counters | None = None
    after: Counters | None = None
    complete: bool = False


@dataclass(slots=True)
class SideRecord:
    """One side of a run. `profile`: how its load was sent, if not as the measurement says. `missing`: what an
    attached endpoint does not know or refuses, by the names of the fields that ask for it. `ready_after_s`: how
    long its engine took to start; None if it ran already."""

    label: str
    settings: SideSettings
    command: str = ""
    runtime_version: str | None = None
    device: str | None = None
    placement: str = ""
    contended: bool = True
    profile: LoadProfile | None = None
    ready_after_s: float | None = None
    missing: tuple[str, ...] = ()
    trials: list[Trial] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    problem: Problem | None = None
    log_tail: list[str] = field(default_factory=list)

    @property
    def requests(self) -> list[RequestTrace]:
        """Of all trials, in order."""
        return [trace for trial in self.trials for trace in trial.requests]


@dataclass(frozen=True, slots=True)
class TopLogprobs:
    """What one side would have said at one position of one prompt's answer: token id -> natural log."""

    side: int
    prompt: int
    position: int
    top: dict[int, float]


@dataclass(frozen=True, slots=True)
class Repeats:
    """One side's answers to one prompt above temperature 0, as token ids; None where one failed or had no ids."""

    side: int
    answers: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class OutputEvidence:
    """What the output check asked for after the last round, beside the answers of the rounds themselves."""

    logprobs: tuple[TopLogprobs, ...] = ()
    repeats: tuple[Repeats, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A question with an exact answer; any of `accepted` is right."""

    question: str
    accepted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccuracyEvidence:
    """What the accuracy check asked after the last round, and each side's answer to each task; None: none came."""

    tasks: tuple[Task, ...]
    answers: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class HarnessScores:
    """One metric of one task of lm-evaluation-harness: each side's score of each question, all in the same order;
    None: it has none."""

    task: str
    metric: str
    scores: tuple[tuple[float | None, ...], ...]
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class HarnessEvidence:
    """What lm-evaluation-harness of that version came to after the last round. `problem`: why there is nothing."""

    version: str
    scores: tuple[HarnessScores, ...] = ()
    problem: Problem | None = None


@dataclass(slots=True)
class Run:
    """What the history keeps of a comparison. `measurement` is None for a race; `sweep_id` names the sweep that it
    is a point of."""

    id: str
    created_at: str
    mode: Mode
    workload: Workload
    sides: list[SideRecord]
    measurement: Measurement | None = None
    preset: str | None = None
    sweep_id: str | None = None
    status: Status = "running"
    machine: dict[str, object] = field(default_factory=dict)
    seed: int | None = 0
    problem: Problem | None = None
    outputs: OutputEvidence | None = None
    accuracy: AccuracyEvidence | None = None
    harness: HarnessEvidence | None = None

    @property
    def asked(self) -> str:
        """In a few words: the prompt, or the name of the set or file that took its place."""
        given = self.measurement.prompts if self.measurement is not None else None
        if isinstance(given, SyntheticPrompts):
            return f"{given.count} x {given.input_tokens} tokens"
        return given.rsplit("/", 1)[-1] if given is not None else self.workload.prompt
