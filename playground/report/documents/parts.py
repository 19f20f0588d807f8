"""What several documents hold: messages, figures, verdicts, claims, changes.

Documents are plain dictionaries; these types say what is in them, and `playground.report.schema` makes the JSON
Schema of them. Figures carry their unit in their name; None means unknown, never 0.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal, overload

from pydantic import Field, GetPydanticSchema
from typing_extensions import TypedDict

from playground.domain.claims.claims import Claimed, Standing
from playground.domain.message import Message
from playground.domain.record.figures import Count, NotNegative, SideFigures
from playground.domain.record.metrics import RequestFigures
from playground.domain.spec.change import Value
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.settings import SideSettings
from playground.domain.spec.workload import Objective
from playground.domain.stats.verdicts import Outcome, Verdict
from playground.i18n import Locale, say_message

SCHEMA_VERSION: Final = 1
SchemaVersion = Literal[1]

Positive = Annotated[int, Field(ge=1)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Interval = tuple[float, float]


def dumped(kind: Any) -> GetPydanticSchema:
    """The shape of what `asdict` or `model_dump` returns for this class."""
    return GetPydanticSchema(lambda _, handler: handler(kind))


SideFiguresDocument = Annotated[dict[str, Any], dumped(SideFigures)]
SettingsDocument = Annotated[dict[str, Any], dumped(SideSettings)]
ProfileDocument = Annotated[dict[str, Any], dumped(LoadProfile)]


class MessageDocument(TypedDict):
    id: str
    """The message's id, the same in every language."""
    message: str


class ChangeDocument(TypedDict):
    key: str
    """A dotted key of the side's settings, such as knobs.max_num_seqs; speculation = off switches it off."""
    value: Value
    """null: the engine's default."""


class RequestFiguresDocument(TypedDict):
    ttft_ms: NotNegative | None
    tpot_ms: NotNegative | None
    e2el_ms: NotNegative | None
    output_tokens: Count | None
    approximate: bool


class VerdictDocument(TypedDict):
    side: str
    baseline: str
    metric: Objective
    verdict: Outcome
    speed_up: Annotated[float, Field(gt=0)] | None
    """Above 1: the side is better."""
    interval: Interval | None
    """95%; null with fewer than six rounds."""
    rounds: Count
    """Those in which both values were known."""
    reason: str | None
    """What a reader must know as well."""
    needed_rounds: Count | None
    """Further rounds that would settle an unclear verdict; null: settled, or unreasonably many."""


class ClaimDocument(TypedDict):
    """Of a preset that is a claim's experiment, unchanged and ended: what the claim says, and whether it holds."""

    claim: str
    measured: str
    outcome: Standing
    reason: str | None
    """Why it can't be decided."""


def json_text(document: Any) -> str:
    """The document as it is printed and saved."""
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


@overload
def message_document(message: Message, locale: Locale) -> MessageDocument: ...
@overload
def message_document(message: Message | None, locale: Locale) -> MessageDocument | None: ...
def message_document(message: Message | None, locale: Locale) -> MessageDocument | None:
    if message is None:
        return None
    return {"id": message.message_id, "message": say_message(message, locale)}


def side_figures_document(figures: SideFigures) -> SideFiguresDocument:
    document = asdict(figures)
    document["errors"] = {name.removeprefix("stream."): count for name, count in figures.errors.items()}
    return document


def request_figures_document(figures: RequestFigures) -> RequestFiguresDocument:
    """A request's figures without the lists of gaps and ITL: both follow from the chunks."""
    return {
        "ttft_ms": figures.ttft_ms,
        "tpot_ms": figures.tpot_ms,
        "e2el_ms": figures.e2el_ms,
        "output_tokens": figures.output_tokens,
        "approximate": figures.approximate,
    }


def verdict_document(verdict: Verdict, locale: Locale) -> VerdictDocument:
    return {
        "side": verdict.side,
        "baseline": verdict.baseline,
        "metric": verdict.metric,
        "verdict": verdict.verdict,
        "speed_up": verdict.speed_up,
        "interval": verdict.interval,
        "rounds": verdict.rounds,
        "reason": None if verdict.reason is None else say_message(verdict.reason.message, locale),
        "needed_rounds": verdict.needed_rounds,
    }


def claim_document(claimed: Claimed | None, locale: Locale) -> ClaimDocument | None:
    if claimed is None:
        return None
    return {
        "claim": say_message(claimed.claim, locale),
        "measured": say_message(claimed.measured, locale),
        "outcome": claimed.standing,
        "reason": None if claimed.reason is None else say_message(claimed.reason, locale),
    }
