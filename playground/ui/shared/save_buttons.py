"""The buttons beside a run or sweep: copy its address, repeat it, load its settings into the page, or save it as a
file."""

from __future__ import annotations

import json
import logging
from typing import get_args

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say
from playground.logs import refused
from playground.report.exports.files import Format, exported, formats_of
from playground.runs.host import Host
from playground.store import READERS, WRITERS, Result, readable

from . import view
from .form_origin import stored
from .visitor import CURRENT

logger = logging.getLogger(__name__)

FORMATS: tuple[Format, ...] = get_args(Format)


def build(host: Host, elem_id: str) -> gr.HTML:
    """The buttons, none until there is a run or sweep. A click on the one that loads settings is an event, and
    `change` is one after what people add was changed; the others fetch a file's text."""

    async def file_text(request: object) -> str:
        """The text of the file of a run or a sweep, by its id; none if it can't be read."""
        fields = request if isinstance(request, dict) else {}
        form = next((form for form in FORMATS if form == fields.get("form")), None)
        locale: Locale = "zh-CN" if fields.get("locale") == "zh-CN" else "en"
        try:
            return "" if form is None else await READERS.run(written, str(fields.get("run")), form, locale)
        except PlaygroundError as error:
            refused(logger, error, "%s is not exported", fields.get("run"))
            return ""

    def written(saved_id: str, form: Format, locale: Locale) -> str:
        record = stored(host, saved_id)
        with readable(saved_id):
            return "" if record is None else exported(record, form, locale)

    async def annotate(request: object) -> bool:
        """Set the star, the tags and the note, or delete or undelete. Returns whether that was done."""
        fields = request if isinstance(request, dict) else {}
        try:
            return await WRITERS.run(changed, str(fields.get("run")), fields, CURRENT.get())
        except PlaygroundError as error:
            refused(logger, error, "%s is not changed", fields.get("run"))
            return False

    def changed(saved_id: str, fields: dict[str, object], visitor: str) -> bool:
        history = host.history
        if not host.may_change(saved_id, visitor):
            return False
        if "deleted" in fields:
            return history.delete(saved_id) if fields["deleted"] is True else history.undelete(saved_id)
        texts = {name: str(fields.get(name) or "") for name in ("tags", "note")}
        history.annotate(saved_id, star=fields.get("star") is True, **texts)
        return True

    return gr.HTML(
        html_template='<div class="kept" hidden></div>',
        js_on_load=f"{view.asset('address.js')}\n{view.asset('kept.js')}",
        apply_default_css=False,
        elem_id=elem_id,
        server_functions=[file_text, annotate],
    )


def offers(record: Run | Sweep, locale: Locale, *, load: bool, result: Result | None = None) -> str:
    """The component's value. `load`: offer its address, to repeat it, and to load the settings. `result`: what
    people have added, if they can."""
    formats = formats_of(record)
    names = [*formats, "saving", "failed", *(("link", "copied") if load else ())]
    # What another tool measured can't be run again.
    repeatable = load and not (isinstance(record, Run) and record.mode == "imported")
    names += ["load"] if repeatable else []
    names += ["replay"] if load and isinstance(record, Run) and record.mode == "race" else []
    names += ["star", "starred", "tags", "note", "delete", "deleted", "undo"] if result else []
    texts = {name: say(f"kept.{name.replace('-', '_')}", locale) for name in names}
    if repeatable and isinstance(record, Run) and record.status != "running":
        texts["again"] = say(f"kept.again_{record.mode}", locale)
    kind = "sweep" if isinstance(record, Sweep) else "run"
    values = None if result is None else {"star": result.star, "tags": result.tags, "note": result.note}
    offered = {"run": record.id, "kind": kind, "locale": locale, "formats": formats, "texts": texts}
    return json.dumps({**offered, "added": values})
