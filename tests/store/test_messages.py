"""Messages <-> JSON: what was said is said again."""

from __future__ import annotations

from playground.domain.message import Message, Section
from playground.i18n import LOCALES, say_message
from playground.store.messages import message_of, message_text


def test_a_section_of_the_form_is_said_again() -> None:
    detail = Message("accepted.other")
    told = Message(
        "settings.bad_value", {"where": Section.PROMPT, "key": "temperature", "value": 9, "detail": detail}
    )
    kept = message_of(message_text(told))
    assert kept is not None
    for locale in LOCALES:
        assert say_message(kept, locale) == say_message(told, locale)
    assert say_message(kept).startswith("Prompt: temperature = 9")
