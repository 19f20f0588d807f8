"""The snippets that start a side elsewhere, as HTML, each with a button that copies it (assets/deploy.js)."""

from __future__ import annotations

from html import escape

from playground.config import Config
from playground.domain.record.run import SideRecord
from playground.domain.spec.settings import EngineSettings
from playground.i18n import Locale, say
from playground.report.deploy import snippets


def deploy_html(config: Config, side: SideRecord, locale: Locale, title: str) -> str:
    """The HTML; empty until the side's version is known, and for an attached endpoint."""
    if not isinstance(side.settings, EngineSettings) or side.device is None:
        return ""
    copy, copied = (escape(say(f"deploy.{name}", locale)) for name in ("copy", "copied"))
    blocks = []
    for kind, text in snippets(config, side.settings, side.runtime_version, side.device).items():
        name = escape(say(f"deploy.{kind}", locale))
        blocks.append(
            f'<div class="snippet"><strong>{name}</strong>'
            f'<button type="button" aria-label="{copy}: {name}" data-copied="{copied}">{copy}</button></div>'
            f"<pre><code>{escape(text)}</code></pre>"
        )
    return f'<details class="deploy"><summary>{escape(title)}</summary>{"".join(blocks)}</details>'
