"""Static labels by gr.I18n, from the same table as every other sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import gradio as gr
from gradio.i18n import I18nData

from playground.i18n import LOCALES, Locale, locale_of, say

# Set by assets/language.js.
COOKIE = re.compile(rf"(?:^|;\s*)playground-language=({'|'.join(LOCALES)})(?:;|$)")

# The messages that were passed to `sentence`; the page sends only these.
I18N = gr.I18n(**{locale: {} for locale in LOCALES})


def sentence(message_id: str, **params: object) -> I18nData:
    """A message in the visitor's language, for a label, a placeholder or, as text, a choice of a list."""
    key = "/".join([message_id, *(str(value) for value in params.values())])
    for locale in LOCALES:
        I18N.translations[locale][key] = say(message_id, locale, **params)
    return I18N(key)


def label(name: str) -> I18nData:
    """The label `ui.<name>` in the visitor's language."""
    return sentence(f"ui.{name}")


def visitor_locale(request: gr.Request | None) -> Locale:
    """The visitor's language, for what the server itself renders."""
    return locale_by(request.headers if request else {})


def locale_by(headers: Mapping[str, str]) -> Locale:
    """The language that the visitor has chosen on the page, else the browser's."""
    chosen = COOKIE.search(headers.get("cookie", ""))
    return cast(Locale, chosen[1]) if chosen else locale_of(headers.get("accept-language"))
