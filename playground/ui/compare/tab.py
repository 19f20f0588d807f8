"""The Compare tab: preset, sides, prompt, measurement, the buttons that start a run, and its results."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground import presets
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Section
from playground.domain.record.run import Mode
from playground.domain.spec.case import MOST_SIDES, Case, Side
from playground.domain.spec.workload import Workload
from playground.domain.validation import validate
from playground.engine.devices import Machine
from playground.i18n import Locale
from playground.presets import Preset
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.ui.compare import cards as side_cards
from playground.ui.compare import (
    controls,
    explain_panel,
    measure_form,
    paste_box,
    preflight_panel,
    remedies,
    side_count,
    side_form,
)
from playground.ui.compare.cards.events import CardEvents
from playground.ui.gallery.gallery import Gallery
from playground.ui.shared import view
from playground.ui.shared.form_origin import filled_from, origin, preset_of
from playground.ui.shared.labels import label
from playground.ui.shared.message import FieldPlace

from .controls import Controls

ROLES = ("user", "assistant")


@dataclass
class CompareTab:
    """The components that events read and change. `base` names what filled the fields: see form_origin.py."""

    base: gr.Textbox
    gallery: Gallery
    cards: gr.HTML
    settings: gr.Accordion
    sides: list[side_form.SideForm]
    count: side_count.SideCount
    prompt: gr.Textbox
    system: gr.Textbox
    turns: gr.Textbox
    max_tokens: gr.Number
    temperature: gr.Number
    top_p: gr.Textbox
    top_k: gr.Textbox
    seed: gr.Number
    ignore_eos: gr.Checkbox
    measurement: measure_form.MeasureForm
    controls: Controls
    preflight: preflight_panel.Panel
    panes: gr.HTML
    charts: gr.HTML
    explain: explain_panel.ExplainPanel

    def fields(self) -> list[Any]:
        """What a visitor fills in."""
        fields: list[Any] = [self.prompt, self.system, self.turns, self.max_tokens, self.temperature]
        fields += [self.top_p, self.top_k, self.seed, self.ignore_eos, *self.measurement.fields.values()]
        return fields + [field for side in self.sides for field in side.fields.values()]

    def inputs(self) -> set[Any]:
        return {*self.fields(), self.base, self.controls.mode}

    def filled(self) -> list[Any]:
        """The components that `filling` may change."""
        parts = {part for side in self.sides for part in side.outputs()} | {*self.measurement.outputs()}
        return [*{self.base, self.gallery.component, self.cards, *self.count.buttons, *self.fields(), *parts}]


def build(host: Host, machine: Machine) -> CompareTab:
    """All components, filled with the embedded preset."""
    first = presets.load(presets.EMBEDDED)
    sampling = first.workload.sampling
    gallery = Gallery(host, machine, first)
    cards = side_cards.build(side_cards.cards(first.sides, first.sides, "en"))
    prompt = gr.Textbox(
        first.workload.prompt,
        label=label("prompt"),
        placeholder=label("prompt_placeholder"),
        lines=4,
        max_lines=10,
        elem_id="asked-prompt",
        elem_classes="setup",
    )
    buttons = controls.build(host)
    with gr.Accordion(label("settings"), open=False, elem_id="sides", elem_classes="setup") as settings:
        with gr.Row():
            sides = [
                side_form.build(
                    host.config, index, first.sides[min(index, len(first.sides) - 1)], index < len(first.sides)
                )
                for index in range(MOST_SIDES)
            ]
        count = side_count.build(len(first.sides))
    with gr.Accordion(label("sampling"), open=False, elem_id="sampling", elem_classes="setup"):
        with gr.Row():
            max_tokens = _sampling(gr.Number, "max_tokens", sampling.max_tokens, precision=0)
            temperature = _sampling(gr.Number, "temperature", sampling.temperature, step=0.1)
            top_p = _sampling(gr.Textbox, "top_p", "", placeholder=label("knob_default"))
            top_k = _sampling(gr.Textbox, "top_k", "", placeholder=label("knob_default"))
            seed = _sampling(gr.Number, "seed", sampling.seed, precision=0)
        ignore_eos = gr.Checkbox(sampling.ignore_eos, label=label("ignore_eos"))
        system = gr.Textbox("", label=label("system"), lines=2)
        turns = gr.Textbox("", label=label("turns"), info=label("turns_info"), lines=2, elem_id="asked-turns")
    with gr.Accordion(label("measurement"), open=False, elem_id="measuring", elem_classes="setup"):
        measurement = measure_form.build(first)
    return CompareTab(
        base=gr.Textbox(origin(first), visible=False),
        gallery=gallery,
        cards=cards,
        settings=settings,
        sides=sides,
        count=count,
        prompt=prompt,
        system=system,
        turns=turns,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        seed=seed,
        ignore_eos=ignore_eos,
        measurement=measurement,
        controls=buttons,
        preflight=preflight_panel.build(),
        panes=view.panes(applies=True, live="compare-panes"),
        charts=view.chart_grid(live="compare-charts"),
        explain=explain_panel.build(),
    )


def _sampling(kind: Any, name: str, value: object, **options: Any) -> Any:
    return kind(value, label=label(name), min_width=120, elem_id=f"asked-{name}", **options)


def wire(tab: CompareTab, host: Host, *texts: gr.HTML) -> None:
    """Connect the events. `texts` are about the settings, too, and go when these change."""

    def comparison(values: Mapping[Any, Any], mode: Mode) -> Comparison:
        return _comparison(tab, host, values, mode)

    def locate(error: PlaygroundError, values: Mapping[Any, Any]) -> FieldPlace | None:
        return _place_of(tab, host, error, values)

    controls.wire(tab.controls, host, comparison, locate, tab.inputs())
    preflight_panel.wire(tab.preflight, host.config, lambda values: comparison(values, "race"), tab.inputs())
    texts = (tab.preflight.result, *texts)
    of_sides = [field for side in tab.sides for field in side.fields.values()]
    edited = view.emptied_by(texts, of_sides)
    view.emptied_by(texts, [field for field in tab.fields() if field not in of_sides], tab.count.buttons)
    paste_box.wire(tab.sides, host.config)
    measure_form.wire(tab.measurement, host.config.limits)
    events = CardEvents(
        tab.cards,
        tab.sides,
        tab.base,
        tab.controls,
        host,
        lambda values: comparison(values, "race"),
        lambda values: read(tab, host, values)[0],
    )
    edits = [edited, *side_count.wire(tab.count, tab.base, tab.sides, host.config)]
    events.wire(edits, tab.inputs(), [*tab.measurement.fields.values()])
    explain_panel.wire(tab.explain, host.config.limits)
    remedies.wire(tab.panes, tab.sides, tab.settings, tab.controls.message, host)


def _comparison(tab: CompareTab, host: Host, values: Mapping[Any, Any], mode: Mode) -> Comparison:
    """Raises InvalidInput."""
    case, base = read(tab, host, values)
    measurement = case.measurement if mode == "measured" else None
    # A race has no measurement to change.
    case = case if measurement else case.model_copy(update={"measurement": base.measurement})
    return host.comparison(case.sides, case.workload, measurement, preset=preset_of(case, base))


def read(tab: CompareTab, host: Host, values: Mapping[Any, Any]) -> tuple[Case, Preset]:
    """Turn the page's values into frozen settings at once; also returns what it was filled from. Raises
    InvalidInput."""
    base = filled_from(host, values[tab.base])
    entries = side_form.read_all(tab.sides[: len(base.sides)], values, base.sides)
    problems = [problem for entry in entries if isinstance(entry, PlaygroundError) for problem in entry.all]
    if problems:
        first, *further = problems
        first.further = tuple(further)
        raise first
    sides = [entry for entry in entries if isinstance(entry, Side)]
    sampling = {
        # The form has no fields for the other settings.
        **base.workload.sampling.model_dump(),
        "max_tokens": values[tab.max_tokens],
        "temperature": values[tab.temperature],
        "top_p": (values[tab.top_p] or "").strip() or None,
        "top_k": (values[tab.top_k] or "").strip() or None,
        "seed": values[tab.seed],
        "ignore_eos": values[tab.ignore_eos],
    }
    workload = {
        "prompt": values[tab.prompt] or "",
        "system": values[tab.system] or None,
        "turns": _turns(values[tab.turns] or ""),
        "sampling": sampling,
    }
    measurement, objective = measure_form.read(tab.measurement, values, base)
    request = validate(Workload, {**workload, "objective": objective}, where=Section.PROMPT)
    return Case(sides=tuple(sides), workload=request, measurement=measurement), base


def _place_of(tab: CompareTab, host: Host, error: PlaygroundError, values: Mapping[Any, Any]) -> FieldPlace | None:
    """The field that an error is about. Blocking."""
    params = error.params
    key, where = str(params.get("key", "")), params.get("side", params.get("where"))
    name = key.rpartition(".")[2]
    if not key:
        return None
    if where is Section.PROMPT:
        return FieldPlace(
            f"#asked-{name} :is(input, textarea)", () if name == "prompt" else ("#sampling button.label-wrap",)
        )
    if where is Section.MEASUREMENT:
        return measure_form.place_of(name)
    names = [side_form.typed_label(side, values) or side.letter for side in tab.sides]
    if where not in names:
        # An error of settings that can be read.
        with contextlib.suppress(PlaygroundError):
            names = [side.label for side in read(tab, host, values)[0].sides]
    return side_form.place_of(names.index(where), key) if where in names else None


def _turns(text: str) -> list[dict[str, str]]:
    """ "user: ..." and "assistant: ..." lines; a line without a role goes on with the turn before."""
    turns: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        role, colon, rest = line.partition(":")
        if colon and role.strip().lower() in ROLES:
            turns.append({"role": role.strip().lower(), "content": rest.strip()})
        elif turns:
            turns[-1]["content"] += f"\n{line}"
        elif line.strip():
            raise InvalidInput("ui.turns_bad", where=Section.PROMPT, key="turns", line=number)
    return turns


def filling(tab: CompareTab, preset: Preset, locale: Locale) -> dict[Any, Any]:
    """The updates that put this preset, or a run of the history, into the page."""
    workload, sampling = preset.workload, preset.workload.sampling
    changed: dict[Any, Any] = {
        tab.base: origin(preset),
        **side_count.updates(tab.count, len(preset.sides)),
        tab.gallery.component: tab.gallery.chosen(preset, locale),
        tab.cards: side_cards.cards(preset.sides, preset.sides, locale),
        tab.prompt: workload.prompt,
        tab.system: workload.system or "",
        tab.turns: "\n".join(f"{turn.role}: {turn.content}" for turn in workload.turns),
        tab.max_tokens: sampling.max_tokens,
        tab.temperature: sampling.temperature,
        tab.top_p: "" if sampling.top_p is None else str(sampling.top_p),
        tab.top_k: "" if sampling.top_k is None else str(sampling.top_k),
        tab.seed: sampling.seed,
        tab.ignore_eos: sampling.ignore_eos,
        **measure_form.updates(tab.measurement, preset),
    }
    for index, side in enumerate(tab.sides):
        changed |= side_form.updates(side, preset.sides[index] if index < len(preset.sides) else None)
        if index < len(preset.sides):
            changed[side.fields["label"]] = gr.update(value="", placeholder=preset.sides[index].label)
    return changed
