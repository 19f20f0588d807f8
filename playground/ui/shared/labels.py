"""Static labels by gr.I18n, from the same table as every other sentence."""

from __future__ import annotations

import gradio as gr
from gradio.i18n import I18nData

from playground.i18n import LOCALES, Locale, locale_of, table


def _translations() -> dict[str, dict[str, str]]:
    labels = {key: texts for key, texts in table().items() if key.startswith("ui.")}
    # Labels go through no str.format, so braces are single here.
    return {
        locale: {key: texts[locale].replace("{{", "{").replace("}}", "}") for key, texts in labels.items()}
        for locale in LOCALES
    }


I18N = gr.I18n(**_translations())


def label(name: str) -> I18nData:
    """The label `ui.<name>` in the visitor's language."""
    if f"ui.{name}" not in table():
        raise KeyError(name)
    return I18N(f"ui.{name}")


def visitor_locale(request: gr.Request | None) -> Locale:
    """For what the server itself renders."""
    return locale_of(request.headers.get("accept-language") if request else None)
