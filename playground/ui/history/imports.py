"""The History tab's import: a run or sweep saved as JSON, or another tool's results."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.i18n import say, say_message
from playground.runs.host import Host
from playground.store import WRITERS
from playground.store.transfer import import_file, text_of_file
from playground.ui.compare.measure_values import uploaded
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.message import alert

logger = logging.getLogger(__name__)

Listing = Callable[[Mapping[Any, Any], gr.Request], Awaitable[dict[Any, Any]]]


def build() -> gr.UploadButton:
    return gr.UploadButton(
        str(label("hist_import")), file_types=[".json", ".jsonl"], scale=0, min_width=140, elem_id="history-import"
    )


def wire(
    button: gr.UploadButton, host: Host, listed: Listing, filters: set[Any], lines: list[Any], note: gr.HTML
) -> None:
    """Connect the event: what the file holds is added and listed. `note`, which is one of `lines`, says how
    many, or what is wrong."""

    def add(path: object) -> list[str]:
        file = uploaded(path)
        return import_file(host.history, text_of_file(file, file.name), file.name)

    async def on_upload(values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        locale = visitor_locale(request)
        try:
            added = await WRITERS.run(add, values[button])
        except PlaygroundError as error:
            logger.warning("a file is not imported: %s", say_message(error))
            return {note: alert(error, locale)}
        text = escape(say("import.done", locale, count=len(added)))
        if len(added) == 1:
            # A sweep's id leads to the sweep, too.
            text += f' <a href="?run={quote(added[0])}">{escape(say("import.open", locale))}</a>'
        changed = await listed(values, request)
        return {**changed, note: f'<p role="status">{text}</p>{changed[note]}'}

    button.upload(on_upload, {button, *filters}, lines, show_progress="minimal", concurrency_limit=None)
