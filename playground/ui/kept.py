"""What can be done with what the history opened: load its settings into the page, or save it as a file."""

from __future__ import annotations

import json
from typing import Any, get_args

import gradio as gr

from .. import presets
from ..domain.knobs import Case
from ..domain.measurement import Measurement
from ..domain.records import Run
from ..domain.sides import Side
from ..domain.sweep import Sweep
from ..engine.devices import Machine
from ..export import Format, exported
from ..host import Host
from ..presets import Localised, Preset
from ..text import LOCALES, Locale, say
from . import compare_tab, sweep_tab, view
from .compare_tab import CompareTab
from .labels import visitor_locale
from .sweep_tab import SweepTab

FORMATS: tuple[Format, ...] = get_args(Format)


def build(host: Host) -> gr.HTML:
    """Empty until something is open. A click on the first button is an event; the others fetch a file's text."""

    def file_text(asked: object) -> str:
        """Of a run or a sweep, by its id."""
        given = asked if isinstance(asked, dict) else {}
        found = _found(host, str(given.get("run")))
        form = next((form for form in FORMATS if form == given.get("form")), None)
        locale: Locale = "zh-CN" if given.get("locale") == "zh-CN" else "en"
        return "" if found is None or form is None else exported(found, form, locale)

    return gr.HTML(
        html_template='<div class="kept" hidden></div>',
        js_on_load=view.asset("kept.js"),
        apply_default_css=False,
        elem_id="kept",
        server_functions=[file_text],
    )


def offers(kept: Run | Sweep, locale: Locale) -> str:
    """The component's value."""
    texts = {name: say(f"kept.{name}", locale) for name in ("load", *FORMATS, "saving", "failed")}
    return json.dumps({"run": kept.id, "locale": locale, "formats": FORMATS, "texts": texts})


def wire(
    actions: gr.HTML, host: Host, machine: Machine, tabs: gr.Tabs, compare: CompareTab, sweeps: SweepTab
) -> None:
    """A click loads the settings, and shows the tab that holds them."""

    def load(event: gr.EventData, request: gr.Request) -> Any:
        found = _found(host, event.run)
        if found is None:
            return gr.skip()
        preset = as_preset(found)
        filled = compare_tab.filling(compare, preset, machine, visitor_locale(request))
        if isinstance(found, Sweep):
            filled |= sweep_tab.filling(sweeps, preset)
        return {**filled, tabs: gr.update(selected="sweep" if isinstance(found, Sweep) else "compare")}

    outputs = [tabs, *compare.filled(), *sweeps.filled()]
    actions.click(load, None, outputs, show_progress="hidden", concurrency_limit=None)


def as_preset(kept: Run | Sweep) -> Preset:
    """What it was started from: the shipped preset if it is that one still, else one of its own under its id."""
    shipped = presets.load(kept.preset) if kept.preset in presets.names() else None
    if isinstance(kept, Sweep):
        case, plan = kept.case, kept.plan
    else:
        sides = tuple(Side(label=side.label, engine=side.settings, profile=side.profile) for side in kept.sides)
        # A race has none of its own.
        usual = shipped.measurement if shipped else Measurement()
        case, plan = Case(sides=sides, workload=kept.workload, measurement=kept.measurement or usual), None
    if shipped is not None and shipped.case == case:
        return shipped if plan is None else shipped.model_copy(update={"sweep": plan})
    return Preset(
        name=kept.id,
        title=_localised("kept.title", id=kept.id),
        shows=_localised("kept.shows", time=kept.created_at.replace("T", " ")[:16]),
        needs=Localised.model_validate({"en": "", "zh-CN": ""}),
        gpu=False,
        sides=case.sides,
        workload=case.workload,
        measurement=case.measurement,
        sweep=plan,
    )


def _localised(sentence: str, **params: object) -> Localised:
    return Localised.model_validate({locale: say(sentence, locale, **params) for locale in LOCALES})


def _found(host: Host, kept_id: str) -> Run | Sweep | None:
    return host.history.sweep(kept_id) or host.history.get(kept_id)
