"""A check before the start as a JSON document: bytes, None where unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.fit.issue import FitIssue, Level
from playground.domain.fit.memory import Device, Need
from playground.domain.fit.pair import Pair, PairVerdict
from playground.i18n import Locale, say_message
from playground.runs.sides.preflight import SideCheck

from .parts import SCHEMA_VERSION, ChangeDocument, SchemaVersion


class DeviceDocument(TypedDict):
    name: str
    total_bytes: int
    free_bytes: int


class NeededDocument(TypedDict):
    weights: int
    draft_weights: int
    activations: int
    cuda_graphs: int
    other: int
    kv_cache: int
    """One sequence of the full length, or the size that the settings give."""
    total: int


class CacheDocument(TypedDict):
    available_bytes: int
    bytes_per_token: int
    sequence_tokens: int
    """The full length of one sequence."""
    sequences: int
    """How many of the full length there is room for."""


class PairDocument(TypedDict):
    method: str
    verdict: PairVerdict | None
    """null without speculation, and where it is unknown."""
    equal_ids: float | None
    """Share of the target's tokens that have the same id in the draft."""
    size_ratio: float | None
    """The draft's parameters / the target's."""
    reasons: list[str]


class IssueDocument(TypedDict):
    id: str
    message: str
    level: Level
    certain: bool
    """A start is refused."""
    changes: list[list[ChangeDocument]]
    """Each item is one way out: settings of this side, changed together."""


class PreflightSideDocument(TypedDict):
    label: str
    fits: bool | None
    """On its device, alone and beside the sides before it."""
    device: DeviceDocument | None
    """null for an attached endpoint."""
    needed_bytes: NeededDocument | None
    """The least that the engine can work with, on each of its GPUs."""
    available_bytes: int | None
    """What the engine may take of its device."""
    kv_cache: CacheDocument | None
    pair: PairDocument | None
    """null for an attached endpoint."""
    problems: list[IssueDocument]


class PreflightDocument(TypedDict):
    """preflight --json. Estimates, made before anything starts and without the models' weights."""

    schema: SchemaVersion
    sides: Annotated[list[PreflightSideDocument], Field(min_length=2, max_length=4)]


def preflight_document(checks: Sequence[SideCheck], locale: Locale = "en") -> PreflightDocument:
    return {"schema": SCHEMA_VERSION, "sides": [_side(check, locale) for check in checks]}


def _side(check: SideCheck, locale: Locale) -> PreflightSideDocument:
    need, device, pair = check.need, check.device, check.pair
    return {
        "label": check.label,
        "fits": check.fits,
        "device": _device(device) if device else None,
        "needed_bytes": _needed(need) if need else None,
        "available_bytes": need.budget if need else None,
        "kv_cache": _cache(need) if need else None,
        "pair": _pair(pair, locale) if pair else None,
        "problems": [_issue(issue, locale) for issue in check.issues],
    }


def _device(device: Device) -> DeviceDocument:
    return {"name": device.name, "total_bytes": device.total_bytes, "free_bytes": device.free_bytes}


def _needed(need: Need) -> NeededDocument:
    return {
        "weights": need.weights,
        "draft_weights": need.draft_weights,
        "activations": need.activations,
        "cuda_graphs": need.cuda_graphs,
        "other": need.other,
        "kv_cache": need.kv_least,
        "total": need.total,
    }


def _cache(need: Need) -> CacheDocument:
    return {
        "available_bytes": max(need.kv_available, 0),
        "bytes_per_token": need.kv_per_token,
        "sequence_tokens": need.length,
        "sequences": need.sequences,
    }


def _pair(pair: Pair, locale: Locale) -> PairDocument:
    return {
        "method": pair.method,
        "verdict": pair.verdict,
        "equal_ids": pair.equal_ids,
        "size_ratio": pair.size_ratio,
        "reasons": [say_message(issue.problem, locale) for issue in pair.issues],
    }


def _issue(issue: FitIssue, locale: Locale) -> IssueDocument:
    return {
        "id": issue.problem.message_id,
        "message": say_message(issue.problem, locale),
        "level": issue.level,
        "certain": issue.certain,
        "changes": [
            [{"key": change.key, "value": change.value} for change in remedy] for remedy in issue.remedies
        ],
    }
