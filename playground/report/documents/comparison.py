"""A comparison as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.answers.agreement import run_agreements
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.figures import Count, NotNegative
from playground.domain.record.metrics import request_figures, side_figures
from playground.domain.record.run import Mode, Run, SideRecord, Status
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.workload import Workload
from playground.domain.stats.expenses import Expense, ExpenseRatio, expense_ratios
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.engine.failures.remedies import change_label, remedy_of
from playground.i18n import Locale, say_message
from playground.report.claims import claim_of
from playground.report.findings import Finding, findings

from .answers import (
    AccuracyDocument,
    AgreementDocument,
    HarnessResultDocument,
    accuracy_document,
    harness_document,
    outputs_document,
)
from .parts import (
    SCHEMA_VERSION,
    ChangeDocument,
    ClaimDocument,
    Interval,
    MessageDocument,
    Positive,
    ProfileDocument,
    RequestFiguresDocument,
    SchemaVersion,
    SettingsDocument,
    SideFiguresDocument,
    Time,
    VerdictDocument,
    claim_document,
    dumped,
    message_document,
    request_figures_document,
    side_figures_document,
    verdict_document,
)
from .prompts import PromptsReadDocument, prompts_read_document


class GpuDocument(TypedDict):
    name: str
    total_bytes: Positive
    capability: NotRequired[str]
    """Its CUDA compute capability, as 9.0."""


class MachineDocument(TypedDict):
    cpu: str
    cores: Positive
    native_bf16: bool
    memory_bytes: Positive
    gpus: list[GpuDocument]
    driver: NotRequired[str]
    """Of the GPUs."""
    system: str
    node: NotRequired[str]
    """The machine's name, where another one asked for the run."""
    gpu_uuids: NotRequired[list[str]]
    """In the order of `gpus`; with `node` only."""


class NoMachineDocument(TypedDict):
    """The run ended before the machine was looked at."""


class RuntimeDocument(TypedDict):
    version: str | None
    """vLLM's version."""
    device: Annotated[str | None, dumped(Literal["cpu", "cuda"] | None)]
    placement: str | None
    """Cores or GPUs, as in "CPU 0-1"; attached and the address."""


class RequestDocument(TypedDict):
    round: Count
    """0 in a race."""
    prompt: str
    output_text: str
    token_ids: list[Count] | None
    """null where a chunk came without token ids."""
    output_tokens: Count | None
    finish_reason: str | None
    """null: it never finished."""
    chunks: list[tuple[NotNegative, Count | None]]
    """[milliseconds since the request was sent, tokens]; tokens are null where the endpoint counts none."""
    figures: RequestFiguresDocument
    problem: MessageDocument | None


class LabelledChangeDocument(ChangeDocument):
    label: str


class RemedyDocument(TypedDict):
    advice: str
    changes: list[LabelledChangeDocument]
    """Each may help alone."""


class SideDocument(TypedDict):
    label: str
    settings: SettingsDocument
    runtime: RuntimeDocument
    start: NotRequired[dict[str, NotNegative]]
    """Stage of its engine's start -> seconds, in order. Absent where it ran already."""
    path: NotRequired[Annotated[dict[str, Any], dumped(EnginePath)]]
    """How its engine says that it works, null where it does not. Absent where none was asked."""
    command: str | None
    """As one would type it; null if it was never made."""
    contended: bool
    """The sides may slow each other: their speeds are no verdict."""
    profile: ProfileDocument | None
    """How this side's load was sent; null: as the measurement says."""
    missing: list[str]
    """What an attached endpoint does not know or refuses, by the names of the fields that ask for it."""
    figures: SideFiguresDocument
    requests: list[RequestDocument]
    problem: MessageDocument | None
    """Why the engine did not start, or died."""
    remedy: RemedyDocument | None
    """What to change so that it does not happen again."""


class RoundDocument(TypedDict):
    round: Count
    order: Annotated[Sequence[str], Field(min_length=2)]
    """Labels of the sides in the order in which they served."""
    values: Mapping[str, float | None]
    """Label -> the objective's figure: ms (tpot, ttft), tokens/s (throughput), requests/s (goodput)."""


class ExpenseRatioDocument(TypedDict):
    """What a side takes for its output, over what the first takes; below 1: less."""

    side: str
    baseline: str
    figure: Expense
    ratio: Annotated[float, Field(gt=0)]
    interval: Interval
    """95%, paired by rounds."""


class FindingDocument(TypedDict):
    rule: Annotated[str, Field(pattern="^[a-z_]+$")]
    """The id of the rule: stable, unlike the sentences."""
    side: str
    evidence: str
    """What was seen."""
    meaning: str
    """What it means."""
    remedy: str
    """What to do."""
    change: ChangeDocument | None
    """The remedy, where it is one setting of that side."""


class CompareDocument(TypedDict):
    """compare --json, history show ID --json, history export ID --format json."""

    schema: SchemaVersion
    run_id: str
    created_at: Time
    """When the run was made, with the host's offset."""
    status: Status
    """interrupted: the playground's process ended during the run."""
    preset: str | None
    """null: settings made on the page."""
    mode: Mode
    machine: Annotated[Mapping[str, object], dumped(MachineDocument | NoMachineDocument)]
    workload: Annotated[dict[str, Any], dumped(Workload)]
    measurement: Annotated[dict[str, Any] | None, dumped(Measurement | None)]
    """null for a race."""
    seed: int | None
    earlier: NotRequired[str | None]
    """The id of the run that it repeats. Absent in older documents."""
    problem: MessageDocument | None
    """Why the run as a whole failed."""
    sides: Annotated[list[SideDocument], Field(min_length=1, max_length=4)]
    rounds: list[RoundDocument]
    """The whole rounds in order. A race has none."""
    verdicts: list[VerdictDocument]
    """Each other side against the first. A race has none."""
    expenses: NotRequired[list[ExpenseRatioDocument]]
    """Energy and cost, where they are known in at least six rounds. Absent in documents that are older than it."""
    outputs: Annotated[list[AgreementDocument], Field(max_length=3)]
    """Do the sides give the same answers? Each side but the first against the first; empty: not compared."""
    accuracy: NotRequired[AccuracyDocument | None]
    """null: not requested, or the run ended before it. Absent in documents that are older than it."""
    harness: NotRequired[HarnessResultDocument | None]
    """null: not requested, or the run ended before it. Absent in documents that are older than it."""
    prompts: NotRequired[PromptsReadDocument]
    """Of a prompts file; absent without one."""
    claim: ClaimDocument | None
    findings: list[FindingDocument]
    """What stands out, what makes the figures doubtful first."""
    record: NotRequired[dict[str, Any]]
    """In a file only: all that the history keeps, which `import` reads."""


def compare_document(run: Run, locale: Locale = "en") -> CompareDocument:
    """A race has no rounds and no verdicts."""
    rounds = rounds_of(run)
    document: CompareDocument = {
        "schema": SCHEMA_VERSION,
        "run_id": run.id,
        "created_at": run.created_at,
        "status": run.status,
        "preset": run.preset,
        "mode": run.mode,
        "machine": run.machine,
        "workload": run.workload.model_dump(mode="json", exclude_none=True),
        "measurement": run.measurement.model_dump(mode="json", exclude_none=True) if run.measurement else None,
        "seed": run.seed,
        "earlier": run.earlier,
        "problem": message_document(run.problem, locale),
        "sides": [_side(run, side, locale) for side in run.sides],
        "rounds": [{"round": item.number, "order": item.order, "values": item.values} for item in rounds],
        "verdicts": [verdict_document(verdict, locale) for verdict in run_verdicts(run, rounds)],
        "expenses": [_expense(ratio) for ratio in expense_ratios(run)],
        "outputs": outputs_document(run_agreements(run), [side.label for side in run.sides], locale),
        "accuracy": accuracy_document(run),
        "harness": harness_document(run, locale),
        "claim": claim_document(claim_of(run), locale),
        "findings": [_finding(finding, locale) for finding in findings(run)],
    }
    if run.prompts is not None:
        document["prompts"] = prompts_read_document(run.prompts, locale)
    return document


def _side(run: Run, side: SideRecord, locale: Locale) -> SideDocument:
    document: SideDocument = {
        "label": side.label,
        "settings": side.settings.model_dump(mode="json", exclude_none=True),
        "runtime": {"version": side.runtime_version, "device": side.device, "placement": side.placement or None},
        "command": side.command or None,
        "contended": side.contended,
        "profile": side.profile.model_dump(mode="json", exclude_none=True) if side.profile else None,
        "missing": list(side.missing),
        "figures": side_figures_document(side_figures(side, run.measurement)),
        "requests": [_request(trial.round, trace, locale) for trial in side.trials for trace in trial.requests],
        "problem": message_document(side.problem, locale),
        "remedy": _remedy(run, side, locale),
    }
    if side.start:
        document["start"] = {each.stage: each.seconds for each in side.start}
    if side.path is not None:
        document["path"] = asdict(side.path)
    return document


def _request(number: int, trace: RequestTrace, locale: Locale) -> RequestDocument:
    return {
        "round": number,
        "prompt": trace.conversation[-1].content,
        "output_text": trace.output_text,
        "token_ids": trace.token_ids,
        "output_tokens": trace.counted_tokens,
        "finish_reason": trace.finish_reason,
        "chunks": [(round(chunk.ms, 3), chunk.tokens) for chunk in trace.chunks],
        "figures": request_figures_document(request_figures(trace)),
        "problem": message_document(trace.problem, locale),
    }


def _remedy(run: Run, side: SideRecord, locale: Locale) -> RemedyDocument | None:
    remedy = remedy_of(side, run.machine)
    if remedy is None:
        return None
    return {
        "advice": say_message(remedy.advice, locale),
        "changes": [
            {"key": change.key, "value": change.value, "label": say_message(change_label(change), locale)}
            for change in remedy.changes
        ],
    }


def _expense(expense: ExpenseRatio) -> ExpenseRatioDocument:
    return {
        "side": expense.side,
        "baseline": expense.baseline,
        "figure": expense.figure,
        "ratio": expense.ratio.value,
        "interval": expense.ratio.interval,
    }


def _finding(finding: Finding, locale: Locale) -> FindingDocument:
    evidence, meaning, remedy = (say_message(sentence, locale) for sentence in finding.sentences)
    change = finding.change
    return {
        "rule": finding.rule,
        "side": finding.side,
        "evidence": evidence,
        "meaning": meaning,
        "remedy": remedy,
        "change": None if change is None else {"key": change.key, "value": change.value},
    }
