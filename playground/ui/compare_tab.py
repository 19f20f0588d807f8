"""The Compare tab: preset, sides, prompt, measurement, the buttons that start a run, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from .. import presets
from ..compare import Comparison
from ..domain.errors import InvalidInput
from ..domain.knobs import Case
from ..domain.records import Mode
from ..domain.workload import Workload
from ..engine.devices import Machine
from ..host import Host
from ..presets import Preset
from ..text import Locale, say
from . import form, measure_form, preflight_panel, remedies, runs, view
from .labels import label, visitor_locale
from .runs import Controls

ROLES = ("user", "assistant")


@dataclass
class CompareTab:
    """The components that events read and change."""

    preset: gr.Dropdown
    card: gr.HTML
    settings: gr.Accordion
    sides: list[form.SideForm]
    prompt: gr.Textbox
    system: gr.Textbox
    turns: gr.Textbox
    max_tokens: gr.Number
    temperature: gr.Number
    top_p: gr.Textbox
    top_k: gr.Textbox
    seed: gr.Number
    ignore_eos: gr.Checkbox
    measurement: gr.HTML
    controls: Controls
    preflight: preflight_panel.Panel
    panes: gr.HTML
    charts: gr.HTML

    def inputs(self) -> set[Any]:
        own: set[Any] = {self.preset, self.prompt, self.system, self.turns, self.max_tokens, self.temperature}
        own |= {self.top_p, self.top_k, self.seed, self.ignore_eos, self.measurement, self.controls.asked}
        return own | {component for side in self.sides for component in side.components()}


def build(host: Host, machine: Machine) -> CompareTab:
    """All components, filled with the embedded preset."""
    first = presets.load(presets.EMBEDDED)
    sampling = first.workload.sampling
    with gr.Row():
        with gr.Column(scale=2, min_width=280):
            preset = gr.Dropdown(
                presets.names(), value=first.name, label=label("preset"), info=label("preset_info")
            )
        with gr.Column(scale=3, min_width=280):
            shown = gr.HTML(card(first, machine, "en"), apply_default_css=False, elem_classes="preset-card")
    prompt = gr.Textbox(
        first.workload.prompt,
        label=label("prompt"),
        placeholder=label("prompt_placeholder"),
        lines=4,
        max_lines=10,
    )
    with gr.Accordion(label("settings"), open=False) as settings, gr.Row():
        sides = [
            form.build(host.config, first.sides[min(index, len(first.sides) - 1)], index < len(first.sides))
            for index in range(max(len(presets.load(name).sides) for name in presets.names()))
        ]
    with gr.Accordion(label("sampling"), open=False):
        with gr.Row():
            max_tokens = gr.Number(sampling.max_tokens, precision=0, label=label("max_tokens"), min_width=120)
            temperature = gr.Number(sampling.temperature, label=label("temperature"), step=0.1, min_width=120)
            top_p = gr.Textbox("", label=label("top_p"), placeholder=label("knob_default"), min_width=120)
            top_k = gr.Textbox("", label=label("top_k"), placeholder=label("knob_default"), min_width=120)
            seed = gr.Number(sampling.seed, precision=0, label=label("seed"), min_width=120)
        ignore_eos = gr.Checkbox(sampling.ignore_eos, label=label("ignore_eos"))
        system = gr.Textbox("", label=label("system"), lines=2)
        turns = gr.Textbox("", label=label("turns"), info=label("turns_info"), lines=2)
    with gr.Accordion(label("measurement"), open=False):
        measurement = measure_form.build(first)
    controls = runs.build()
    return CompareTab(
        preset=preset,
        card=shown,
        settings=settings,
        sides=sides,
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
        controls=controls,
        preflight=preflight_panel.build(),
        panes=view.panes(applies=True),
        charts=view.chart_grid(),
    )


def wire(tab: CompareTab, host: Host, machine: Machine) -> None:
    """Connect the events."""

    def on_preset(name: str, request: gr.Request) -> dict[Any, Any]:
        return _filled(tab, presets.load(name), machine, visitor_locale(request))

    filled: list[Any] = [tab.card, tab.prompt, tab.system, tab.turns, tab.max_tokens, tab.temperature]
    filled += [tab.top_p, tab.top_k, tab.seed, tab.ignore_eos, tab.measurement]
    filled += [part for side in tab.sides for part in side.outputs()]
    tab.preset.input(on_preset, tab.preset, filled, show_progress="hidden")

    def comparison(given: Mapping[Any, Any], mode: Mode) -> Comparison:
        return _comparison(tab, host, given, mode)

    runs.wire(tab.controls, host, comparison, tab.inputs(), tab.panes, tab.charts)
    preflight_panel.wire(tab.preflight, host.config, lambda given: comparison(given, "race"), tab.inputs())
    remedies.wire(tab.panes, tab.sides, tab.settings, tab.controls.message, host)


def _comparison(tab: CompareTab, host: Host, given: Mapping[Any, Any], mode: Mode) -> Comparison:
    """Raises InvalidInput."""
    case, preset = read(tab, given)
    measurement = case.measurement if mode == "measured" else None
    # Once changed on the page it is not the preset any more; a race has no measurement to change.
    own = case if measurement else case.model_copy(update={"measurement": preset.measurement})
    name = preset.name if own == preset.case else None
    return host.comparison(case.sides, case.workload, measurement, preset=name)


def read(tab: CompareTab, given: Mapping[Any, Any]) -> tuple[Case, Preset]:
    """Turn what the page holds into frozen settings at once; the preset is what it was filled from. Raises
    InvalidInput."""
    preset = presets.load(given[tab.preset])
    sides = tuple(form.read(side, given) for side in tab.sides[: len(preset.sides)])
    sampling = {
        "max_tokens": given[tab.max_tokens],
        "temperature": given[tab.temperature],
        "top_p": (given[tab.top_p] or "").strip() or None,
        "top_k": (given[tab.top_k] or "").strip() or None,
        "seed": given[tab.seed],
        "ignore_eos": given[tab.ignore_eos],
    }
    workload = {
        "prompt": given[tab.prompt] or "",
        "system": given[tab.system] or None,
        "turns": _turns(given[tab.turns] or ""),
        "sampling": sampling,
    }
    measurement, objective = measure_form.read(given[tab.measurement], preset)
    asked = presets.validate(Workload, {**workload, "objective": objective}, where="prompt")
    return Case(sides=sides, workload=asked, measurement=measurement), preset


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
            raise InvalidInput("ui.turns_bad", line=number)
    return turns


def _filled(tab: CompareTab, preset: Preset, machine: Machine, locale: Locale) -> dict[Any, Any]:
    workload, sampling = preset.workload, preset.workload.sampling
    changed: dict[Any, Any] = {
        tab.card: card(preset, machine, locale),
        tab.prompt: workload.prompt,
        tab.system: workload.system or "",
        tab.turns: "\n".join(f"{turn.role}: {turn.content}" for turn in workload.turns),
        tab.max_tokens: sampling.max_tokens,
        tab.temperature: sampling.temperature,
        tab.top_p: "" if sampling.top_p is None else str(sampling.top_p),
        tab.top_k: "" if sampling.top_k is None else str(sampling.top_k),
        tab.seed: sampling.seed,
        tab.ignore_eos: sampling.ignore_eos,
        tab.measurement: measure_form.values(preset.measurement, workload.objective),
    }
    for index, side in enumerate(tab.sides):
        changed |= form.updates(side, preset.sides[index] if index < len(preset.sides) else None)
    return changed


def card(preset: Preset, machine: Machine, locale: Locale) -> str:
    """What a preset shows and needs."""
    parts = [f"<p><strong>{escape(preset.title.in_locale(locale))}</strong></p>"]
    parts.append(f"<p>{escape(preset.shows.in_locale(locale))}</p>")
    parts.append(f"<p>{escape(say('ui.needs', locale, what=preset.needs.in_locale(locale)))}</p>")
    if preset.gpu and not machine.gpus:
        parts.append(f'<p class="warn">{escape(say("ui.needs_gpu_missing", locale))}</p>')
    return "".join(parts)
