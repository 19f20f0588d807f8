"""The document of a log that was explained."""

from __future__ import annotations

from typing_extensions import TypedDict

from playground.domain.record.figures import Count
from playground.engine.failures.explanation import Explanation
from playground.engine.failures.remedies import change_label
from playground.i18n import Locale, say_message

from .parts import SCHEMA_VERSION, ChangeDocument, Positive, SchemaVersion


class RemedyDocument(TypedDict):
    sentence: str
    change: ChangeDocument | None
    """null: advice that no setting of an engine covers."""


class ExplanationDocument(TypedDict):
    """explain --json."""

    schema: SchemaVersion
    cause: str | None
    """The name of the cause in docs/failures.md, without "failure."; other, core_died, unknown: not known. null:
    the log has no failure."""
    sentence: str
    evidence: list[Positive]
    """The numbers of the lines that say so, from 1."""
    stage: str | None
    """How far the engine's start had got; null: the log does not show it."""
    remedies: list[RemedyDocument]
    """The most promising change first, after the advice."""
    unread_bytes: Count
    """Of the middle of a very long log."""


def explanation_document(explanation: Explanation, locale: Locale = "en") -> ExplanationDocument:
    remedy = explanation.remedy
    remedies: list[RemedyDocument] = []
    if remedy is not None:
        remedies.append({"sentence": say_message(remedy.advice, locale), "change": None})
        remedies += [
            {
                "sentence": say_message(change_label(change), locale),
                "change": {"key": change.key, "value": change.value},
            }
            for change in remedy.changes
        ]
    return {
        "schema": SCHEMA_VERSION,
        "cause": explanation.cause,
        "sentence": say_message(explanation.sentence, locale),
        "evidence": list(explanation.evidence),
        "stage": explanation.stage,
        "remedies": remedies,
        "unread_bytes": explanation.unread_bytes,
    }
