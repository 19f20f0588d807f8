"""Explains any log of vLLM: pasted, or dropped as a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.limits import Limits
from playground.engine.failures.explanation import Explanation, explain
from playground.engine.failures.remedies import change_label
from playground.i18n import Locale, say, say_message
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.message import alert
from playground.workers import CHECKS

from .measure_values import uploaded


@dataclass
class ExplainPanel:
    """The components."""

    text: gr.Textbox
    file: gr.File
    button: gr.Button
    result: gr.HTML


def build() -> ExplainPanel:
    with gr.Accordion(label("explain_log"), open=False, elem_id="explain"):
        with gr.Row():
            text = gr.Textbox(label=label("log_text"), lines=5, max_lines=12, scale=3, elem_id="explain-text")
            file = gr.File(label=label("log_file"), height=130, scale=1, min_width=200, elem_id="explain-file")
        button = gr.Button(label("explain"), size="sm", elem_id="explain-button")
        return ExplainPanel(text, file, button, gr.HTML(apply_default_css=False, elem_id="explanation"))


def wire(panel: ExplainPanel, limits: Limits) -> None:
    """Connect the events."""

    async def on_text(text: str | None, request: gr.Request) -> str:
        return await _shown(lambda locale: of_text(text or "", limits, locale), visitor_locale(request))

    async def on_file(path: str, request: gr.Request) -> str:
        return await _shown(lambda locale: of_upload(path, limits), visitor_locale(request))

    panel.button.click(on_text, panel.text, panel.result, concurrency_limit=None)
    panel.file.upload(on_file, panel.file, panel.result, concurrency_limit=None)


async def _shown(read: Callable[[Locale], Explanation], locale: Locale) -> str:
    try:
        return card(await CHECKS.run(read, locale), locale)
    except PlaygroundError as error:
        return alert(error, locale)


def of_text(text: str, limits: Limits, locale: Locale) -> Explanation:
    """Raises InvalidInput."""
    log = io.BytesIO(text.encode("utf-8", "replace"))
    return explain(log, say("ui.log_text", locale), limits.upload_bytes)


def of_upload(path: object, limits: Limits) -> Explanation:
    """Raises InvalidInput."""
    file = uploaded(path)
    with file.open("rb") as log:
        return explain(log, file.name, limits.upload_bytes)


def card(explanation: Explanation, locale: Locale) -> str:
    """What went wrong, the lines that say so, and what to change."""
    lines = [f"<p><strong>{escape(say_message(explanation.sentence, locale))}</strong></p>"]
    if explanation.remedy is not None:
        lines.append(f"<p>{escape(say_message(explanation.remedy.advice, locale))}</p>")
        changes = [say_message(change_label(change), locale) for change in explanation.remedy.changes]
        lines.append("".join(f"<li>{escape(change)}</li>" for change in changes).join(("<ul>", "</ul>")))
    notes = []
    if explanation.evidence:
        numbers = ", ".join(map(str, explanation.evidence))
        notes.append(say("explain.lines", locale, numbers=numbers))
    if explanation.unread_bytes:
        notes.append(say("explain.unread", locale, mib=explanation.unread_bytes / 2**20))
    lines += [f'<p class="note">{escape(note)}</p>' for note in notes]
    return f'<div role="status">{"".join(lines)}</div>'
