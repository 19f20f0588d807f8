"""The buttons beside a run or sweep: copy its address, load its settings into the page, or save it as a file."""

from __future__ import annotations

import json
import logging
from typing import get_args

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say
from playground.report.export import Format, exported
from playground.runs.host import Host
from playground.store import READERS, readable

from . import view
from .form_origin import stored

logger = logging.getLogger(__name__)

FORMATS: tuple[Format, ...] = get_args(Format)


def build(host: Host, elem_id: str) -> gr.HTML:
    """The buttons, none until there is a run or sweep. A click on the one that loads settings is an event; the
    others fetch a file's text."""

    async def file_text(request: object) -> str:
        """The text of the file of a run or a sweep, by its id; none if it can't be read."""
        fields = request if isinstance(request, dict) else {}
        form = next((form for form in FORMATS if form == fields.get("form")), None)
        locale: Locale = "zh-CN" if fields.get("locale") == "zh-CN" else "en"
        try:
            return "" if form is None else await READERS.run(written, str(fields.get("run")), form, locale)
        except PlaygroundError:
            logger.exception("%s is not exported", fields.get("run"))
            return ""

    def written(saved_id: str, form: Format, locale: Locale) -> str:
        record = stored(host, saved_id)
        with readable(saved_id):
            return "" if record is None else exported(record, form, locale)

    return gr.HTML(
        html_template='<div class="kept" hidden></div>',
        js_on_load=f"{view.asset('address.js')}\n{view.asset('kept.js')}",
        apply_default_css=False,
        elem_id=elem_id,
        server_functions=[file_text],
    )


def offers(record: Run | Sweep, locale: Locale, *, load: bool) -> str:
    """The component's value. `load`: offer its address, and to load the settings."""
    names = (*(["link", "copied", "load"] if load else []), *FORMATS, "saving", "failed")
    texts = {name: say(f"kept.{name}", locale) for name in names}
    kind = "sweep" if isinstance(record, Sweep) else "run"
    return json.dumps({"run": record.id, "kind": kind, "locale": locale, "formats": FORMATS, "texts": texts})
