"""What a pasted text says, as a JSON document."""

from __future__ import annotations

from typing import Annotated, Any

from typing_extensions import TypedDict

from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import Knobs
from playground.domain.spec.speculation import Speculation
from playground.domain.vllm_cli.paste import PastedSettings
from playground.i18n import Locale, say_message

from .parts import SCHEMA_VERSION, MessageDocument, SchemaVersion, dumped, message_document


class PastedSettingsDocument(TypedDict):
    target: str
    speculation: Annotated[dict[str, Any], dumped(Speculation)]
    knobs: Annotated[dict[str, Any], dumped(Knobs)]
    trust_remote_code: bool
    extra_flags: list[str]
    """Options without a field, as they were typed."""


class LeftOutDocument(TypedDict):
    what: str
    """A piece of the text, without values that may be secrets."""
    why: str


class PasteDocument(TypedDict):
    """paste --json."""

    schema: SchemaVersion
    settings: PastedSettingsDocument | None
    """null where the text was refused."""
    translated: list[str]
    """A sentence on each thing that is not read as it is written."""
    left_out: list[LeftOutDocument]
    problem: MessageDocument | None
    """Why the text was refused."""


def paste_document(pasted: PastedSettings | InvalidInput, locale: Locale = "en") -> PasteDocument:
    if isinstance(pasted, InvalidInput):
        problem = message_document(pasted.as_message(), locale)
        return {"schema": SCHEMA_VERSION, "settings": None, "translated": [], "left_out": [], "problem": problem}
    settings = pasted.settings
    return {
        "schema": SCHEMA_VERSION,
        "settings": {
            "target": settings.target,
            "speculation": settings.speculation.model_dump(mode="json", exclude_none=True),
            "knobs": settings.knobs.model_dump(mode="json", exclude_none=True),
            "trust_remote_code": settings.trust_remote_code,
            "extra_flags": list(settings.extra_flags),
        },
        "translated": [say_message(message, locale) for message in pasted.translated],
        "left_out": [{"what": left.what, "why": say_message(left.why, locale)} for left in pasted.left_out],
        "problem": None,
    }
