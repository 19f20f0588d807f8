"""The What-if tab: the knobs to vary and their values, the plan, the buttons, and the sweep's results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.domain.spec.settings import Knobs
from playground.domain.sweep.knobs import ACCEPTANCE, ALIASES, PLAIN, SPECULATION, WORKLOAD_KNOBS
from playground.domain.sweep.plan import MOST_SEARCHED, MOST_SWEPT, Knob, SweepPlan, value_text
from playground.i18n import Locale, say
from playground.presets import Preset
from playground.ui.live import follower
from playground.ui.shared import view
from playground.ui.shared.labels import label, sentence

from . import view as sweep_view
from .view import SweepView

MINUTES = 30
# By the knob's number.
KNOB_INFO = ("whatif_knob_info", "whatif_second_info", "whatif_further_info", "whatif_further_info")
# The knobs most often varied, by group; any other name can be typed.
GROUPS: dict[str, Sequence[str]] = {
    "speculation": (*ALIASES, ACCEPTANCE, *sorted(SPECULATION - set(ALIASES.values()))),
    "workload": tuple(WORKLOAD_KNOBS),
    "engine": (*Knobs.model_fields, *PLAIN),
}


@dataclass
class KnobFields:
    """The fields of one knob. `message` says what is wrong with them; `row` holds the fields."""

    row: gr.Row
    name: gr.Dropdown
    side: gr.Dropdown
    values: gr.Textbox
    message: gr.HTML


@dataclass
class SweepTab:
    """The components that events read and change. `knobs` beyond MOST_SWEPT are for a search. `sweep_id` is the
    sweep that this page follows."""

    tab: gr.Tab
    base: gr.HTML
    knobs: list[KnobFields]
    search: gr.Checkbox
    minutes: gr.Number
    show_plan: gr.Button
    start: gr.Button
    stop: gr.Button
    watch: gr.Button
    message: gr.HTML
    unfinished: gr.Dropdown
    go_on: gr.Button
    plan: gr.HTML
    progress: gr.HTML
    schedule: gr.Button
    view: SweepView
    panes: gr.HTML
    charts: gr.HTML
    sweep_id: gr.State
    follower: gr.HTML
    player: gr.HTML

    def inputs(self) -> set[Any]:
        return {*self.filled(), self.unfinished}

    def filled(self) -> list[Any]:
        """The fields that a visitor fills in and `filling` may change."""
        fields = [part for knob in self.knobs for part in (knob.name, knob.side, knob.values)]
        return [*fields, self.search, self.minutes]


def build(tab: gr.Tab, preset: Preset) -> SweepTab:
    """All components, filled with the preset's sweep."""
    plan = preset.sweep or SweepPlan(knobs=(Knob(name="k", values=(1, 2, 3, 5, 8)),), budget_s=60 * MINUTES)
    base = gr.HTML(apply_default_css=False, elem_id="sweep-base")
    knobs = [_knob(number, plan) for number in range(MOST_SEARCHED)]
    search = gr.Checkbox(
        plan.search,
        label=label("whatif_search"),
        info=label("whatif_search_info"),
        container=False,
        elem_id="sweep-search",
    )
    with gr.Row(elem_classes="at-bottom"):
        minutes = gr.Number(
            plan.budget_s / 60, label=label("whatif_minutes"), min_width=140, elem_id="sweep-minutes"
        )
        show_plan = gr.Button(label("whatif_plan"), min_width=110, elem_id="sweep-plan")
        start = gr.Button(label("whatif_start"), variant="primary", min_width=110, elem_id="sweep-start")
        stop = gr.Button(label("stop"), variant="stop", visible=False, min_width=110, elem_id="sweep-stop")
        watch = gr.Button(label("watch"), visible=False, min_width=110, elem_id="sweep-watch")
    message = gr.HTML(apply_default_css=False, elem_id="sweep-message")
    with gr.Row(elem_classes="at-bottom"):
        unfinished = gr.Dropdown([], label=label("whatif_unfinished"), visible=False, scale=4, min_width=240)
        go_on = gr.Button(label("whatif_go_on"), visible=False, min_width=110, elem_id="sweep-go-on")
    estimate = gr.HTML(apply_default_css=False, elem_id="sweep-told", elem_classes="sweep-plan")
    progress = view.live_text("sweep-progress", elem_id="sweep-progress")
    player = follower.player("sweep")
    schedule = gr.Button(sentence("sweep.measure_schedule"), visible=False, elem_id="sweep-schedule")
    return SweepTab(
        tab=tab,
        base=base,
        knobs=knobs,
        search=search,
        minutes=minutes,
        show_plan=show_plan,
        start=start,
        stop=stop,
        watch=watch,
        message=message,
        unfinished=unfinished,
        go_on=go_on,
        plan=estimate,
        progress=progress,
        schedule=schedule,
        view=sweep_view.build("sweep-points", live="sweep"),
        panes=view.panes("sweep-panes"),
        charts=view.chart_grid(),
        sweep_id=gr.State(""),
        follower=follower.build("sweep"),
        player=player,
    )


def _knob(number: int, plan: SweepPlan) -> KnobFields:
    name, side, values = _texts(plan.knobs[number : number + 1])
    with gr.Row(visible=plan.search or number < MOST_SWEPT) as row:
        name_field = gr.Dropdown(
            choices("en"),
            value=name,
            label=label("whatif_knob_1" if number == 0 else "whatif_knob_2"),
            info=label(KNOB_INFO[number]),
            allow_custom_value=True,
            min_width=220,
            elem_id=f"knob-{number + 1}",
        )
        # The sides are known only when the tab is opened.
        side_field = gr.Dropdown(
            [("", ""), (side, side)] if side else [("", "")],
            value=side,
            label=label("whatif_side"),
            info=label("whatif_side_info"),
            allow_custom_value=True,
            min_width=160,
        )
        values_field = gr.Textbox(
            values,
            label=label("whatif_values"),
            info=label("whatif_values_info"),
            placeholder="1..8",
            max_lines=1,
            min_width=220,
            elem_id=f"values-{number + 1}",
        )
    message = gr.HTML(apply_default_css=False, elem_id=f"knob-message-{number + 1}")
    return KnobFields(row, name_field, side_field, values_field, message)


def choices(locale: Locale) -> list[tuple[str, str]]:
    """(text, name) of each name, with its group."""
    named = [
        (f"{name} · {say(f'whatif.{group}', locale)}", name) for group, names in GROUPS.items() for name in names
    ]
    return [("", ""), *named]


def filling(tab: SweepTab, preset: Preset) -> dict[Any, Any]:
    """The updates that put a preset's sweep into the tab; a preset without one empties the knobs and leaves the
    rest."""
    plan = preset.sweep
    filled: dict[Any, Any] = {tab.minutes: plan.budget_s / 60, tab.search: plan.search} if plan else {}
    for number, fields in enumerate(tab.knobs):
        texts = _texts(plan.knobs[number : number + 1] if plan else ())
        filled |= dict(zip((fields.name, fields.side, fields.values), texts, strict=True))
    return filled


def _texts(knobs: Sequence[Knob]) -> tuple[str, str, str]:
    """The first knob, if there is one, as the fields show it: name, side, values."""
    if not knobs:
        return "", "", ""
    knob = knobs[0]
    return knob.name, knob.side or "", ", ".join(value_text(value) for value in knob.values)
