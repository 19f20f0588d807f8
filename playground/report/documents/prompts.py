"""What was read of a prompts file, as a JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from playground.domain.errors import InvalidInput
from playground.domain.record.figures import Count
from playground.domain.record.prompts import PromptsRead, Remark
from playground.domain.spec.workload import Prompt
from playground.i18n import Locale, say_message

from .parts import SCHEMA_VERSION, MessageDocument, SchemaVersion, message_document

# So many of the first prompts are told, and so much of each.
FIRST = 5
CHARACTERS = 200


class RemarkDocument(TypedDict):
    where: str
    """A line, an entry or a row."""
    why: str


class RemarkCountDocument(TypedDict):
    why: str
    count: Count


class PromptsReadDocument(TypedDict):
    """What was read of a prompts file."""

    read: Count
    """Prompts that can be sent."""
    sampled: Count
    """Prompts that are sent: all, or as many as the host allows, drawn at random."""
    seed: int
    """Of the draw."""
    skipped: list[RemarkDocument]
    """The first entries, for each reason, that are no prompts."""
    skipped_counts: list[RemarkCountDocument]
    """How many they are in all."""
    changed: list[RemarkDocument]
    """The first entries, for each reason, that are sent in part."""
    changed_counts: list[RemarkCountDocument]


class PromptsDocument(PromptsReadDocument):
    """prompts --json."""

    schema: SchemaVersion
    first: Annotated[list[str], Field(max_length=FIRST)]
    """The beginnings of the first prompts."""
    problem: MessageDocument | None
    """Why the file was refused."""


def prompts_read_document(read: PromptsRead, locale: Locale = "en") -> PromptsReadDocument:
    return {
        "read": read.read,
        "sampled": read.sampled,
        "seed": read.seed,
        "skipped": _places(read.skipped, locale),
        "skipped_counts": _counts(read.skipped, locale),
        "changed": _places(read.changed, locale),
        "changed_counts": _counts(read.changed, locale),
    }


def prompts_document(
    read: PromptsRead | InvalidInput, prompts: Iterable[Prompt] = (), locale: Locale = "en"
) -> PromptsDocument:
    problem = message_document(read.as_message(), locale) if isinstance(read, InvalidInput) else None
    known = PromptsRead(0, 0, 0) if isinstance(read, InvalidInput) else read
    return {
        "schema": SCHEMA_VERSION,
        **prompts_read_document(known, locale),
        "first": first_texts(prompts),
        "problem": problem,
    }


def first_texts(prompts: Iterable[Prompt]) -> list[str]:
    """The beginnings of the first prompts."""
    texts = (prompt.conversation[-1].content[:CHARACTERS] for prompt in prompts)
    return [text for text, _ in zip(texts, range(FIRST), strict=False)]


def _places(remarks: Iterable[Remark], locale: Locale) -> list[RemarkDocument]:
    return [
        {"where": say_message(place, locale), "why": say_message(remark.why, locale)}
        for remark in remarks
        for place in remark.first
    ]


def _counts(remarks: Iterable[Remark], locale: Locale) -> list[RemarkCountDocument]:
    return [{"why": say_message(remark.why, locale), "count": remark.count} for remark in remarks]
