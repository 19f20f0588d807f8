"""The Compare tab: preset, sides, prompt, Race and Stop, both answers, charts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from .. import presets
from ..compare import Comparison
from ..domain.errors import HostBusy, InvalidInput, PlaygroundError
from ..domain.records import Status
from ..domain.workload import Workload
from ..engine.devices import Machine
from ..host import Host
from ..presets import Preset
from ..text import Locale, say, say_problem
from . import form, view
from .labels import label, visitor_locale

REPAINT_S = 0.04
CHARTS_S = 0.5
ROLES = ("user", "assistant")


@dataclass
class CompareTab:
    """The components that events read and change."""

    preset: gr.Dropdown
    card: gr.HTML
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
    race: gr.Button
    stop: gr.Button
    watch: gr.Button
    wait: gr.Button
    stop_engines: gr.Button
    message: gr.HTML
    panes: gr.HTML
    charts: gr.HTML
    run_id: gr.State

    def inputs(self) -> set[Any]:
        own = {self.preset, self.prompt, self.system, self.turns, self.max_tokens, self.temperature}
        own |= {self.top_p, self.top_k, self.seed, self.ignore_eos}
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
    with gr.Accordion(label("settings"), open=False), gr.Row():
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
    with gr.Row():
        race = gr.Button(label("race"), variant="primary", scale=2, elem_id="race")
        stop = gr.Button(label("stop"), variant="stop", visible=False, elem_id="stop")
        watch = gr.Button(label("watch"), visible=False, elem_id="watch")
        wait = gr.Button(label("wait"), visible=False, elem_id="wait")
        stop_engines = gr.Button(label("stop_engines"), variant="secondary", elem_id="stop-engines")
    message = gr.HTML(apply_default_css=False, elem_id="message")
    return CompareTab(
        preset=preset,
        card=shown,
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
        race=race,
        stop=stop,
        watch=watch,
        wait=wait,
        stop_engines=stop_engines,
        message=message,
        panes=view.panes(),
        charts=view.chart_grid(),
        run_id=gr.State(""),
    )


def wire(tab: CompareTab, host: Host, machine: Machine) -> None:
    """Connect the events. Text and charts are two streams, so that drawing never delays a token."""
    runs = _Runs(tab, host)
    started = [tab.run_id, tab.race, tab.stop, tab.stop_engines, tab.watch, tab.wait, tab.message]

    def on_preset(name: str, request: gr.Request) -> dict[Any, Any]:
        return _filled(tab, presets.load(name), machine, visitor_locale(request))

    filled: list[Any] = [tab.card, tab.prompt, tab.system, tab.turns, tab.max_tokens, tab.temperature]
    filled += [tab.top_p, tab.top_k, tab.seed, tab.ignore_eos]
    filled += [part for side in tab.sides for part in side.outputs()]
    tab.preset.input(on_preset, tab.preset, filled, show_progress="hidden")

    for button, handler, inputs in (
        (tab.race, runs.start, tab.inputs()),
        (tab.wait, runs.queue, tab.inputs()),
        (tab.watch, runs.join, None),
    ):
        begun = button.click(handler, inputs, started, show_progress="hidden", concurrency_limit=None)
        streams = {"show_progress": "hidden", "concurrency_limit": None}
        # The page's framework searches its whole tree for each output of each message: the panes alone, then.
        painted = begun.then(runs.paint, tab.run_id, tab.panes, **streams)
        painted.then(runs.ended, None, [tab.race, tab.stop, tab.stop_engines], show_progress="hidden")
        begun.then(runs.draw, tab.run_id, tab.charts, **streams)
    tab.stop.click(runs.stop, tab.run_id, None, show_progress="hidden", concurrency_limit=None)
    tab.stop_engines.click(runs.stop_engines, None, tab.message, concurrency_limit=None)


class _Runs:
    """The handlers that start, follow and stop a run."""

    def __init__(self, tab: CompareTab, host: Host) -> None:
        self._tab = tab
        self._host = host

    async def start(self, given: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(given, visitor_locale(request), wait=False)

    async def queue(self, given: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(given, visitor_locale(request), wait=True)

    async def join(self) -> dict[Any, Any]:
        """Watch the run that holds the engines."""
        tab, live = self._tab, self._host.latest
        shown = {tab.stop: gr.update(visible=live is not None and not live.finished)}
        return {tab.run_id: live.run.id if live else "", **self._buttons(busy=False), tab.message: "", **shown}

    async def _begin(self, given: Mapping[Any, Any], locale: Locale, wait: bool) -> dict[Any, Any]:
        tab = self._tab
        try:
            self._host.open()
            comparison = _comparison(tab, self._host, given)
            await self._host.start(comparison, say("host.page", locale), wait=wait)
        except HostBusy as busy:
            return {tab.run_id: "", tab.message: alert(busy, locale), **self._buttons(busy=True)}
        except PlaygroundError as error:
            return {tab.run_id: "", tab.message: alert(error, locale), **self._buttons(busy=False)}
        disabled = gr.update(interactive=False)
        shown = {tab.race: disabled, tab.stop_engines: disabled, tab.stop: gr.update(visible=True)}
        return {tab.run_id: comparison.run.id, tab.message: "", **self._buttons(busy=False), **shown}

    def _buttons(self, busy: bool) -> dict[Any, Any]:
        """Watching is possible only if the run that is in the way is one of this process."""
        tab, live = self._tab, self._host.latest
        can_watch = busy and live is not None and not live.finished
        return {tab.watch: gr.update(visible=can_watch), tab.wait: gr.update(visible=busy)}

    def _followed(self, run_id: str) -> Comparison | None:
        return self._host.followed(run_id) if run_id else None

    async def paint(self, run_id: str, request: gr.Request) -> AsyncIterator[Any]:
        comparison = self._followed(run_id)
        if comparison is None:
            # A generator that yields nothing would empty its outputs.
            yield gr.skip()
            return
        painter = view.Painter(self._host.config, comparison.run, visitor_locale(request), comparison)
        yield painter.paint(whole=True)
        while not comparison.finished:
            await asyncio.sleep(REPAINT_S)
            yield painter.paint()
        yield painter.paint(whole=True)

    async def ended(self) -> dict[Any, Any]:
        tab = self._tab
        enabled = gr.update(interactive=True)
        return {tab.race: enabled, tab.stop: gr.update(visible=False), tab.stop_engines: enabled}

    async def draw(self, run_id: str, request: gr.Request) -> AsyncIterator[Any]:
        comparison, locale = self._followed(run_id), visitor_locale(request)
        if comparison is None:
            yield gr.skip()
            return
        status: Status = "running"
        while status == "running":
            status = comparison.run.status
            if comparison.live.phase in ("streaming", "finished"):
                yield await asyncio.to_thread(view.draw, comparison.run, locale)
            await asyncio.sleep(CHARTS_S)

    async def stop(self, run_id: str) -> None:
        if comparison := self._followed(run_id):
            comparison.stop()

    async def stop_engines(self, request: gr.Request) -> str:
        locale = visitor_locale(request)
        if self._host.pool.holder is not None:
            return f'<div class="alert"><p>{escape(say("ui.engines_busy", locale))}</p></div>'
        await self._host.pool.stop_all()
        return f"<p>{escape(say('ui.engines_stopped', locale))}</p>"


def alert(error: PlaygroundError, locale: Locale) -> str:
    """An error as the page shows it."""
    return f'<div class="alert" role="alert"><p>{escape(say_problem(error, locale))}</p></div>'


def _comparison(tab: CompareTab, host: Host, given: Mapping[Any, Any]) -> Comparison:
    """Turn what the page holds into frozen settings at once. Raises InvalidInput."""
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
    asked = presets.validate(Workload, workload, where="prompt")
    # Once changed on the page it is not the preset any more.
    unchanged = sides == preset.sides and asked == preset.workload
    return host.comparison(sides, asked, preset=preset.name if unchanged else None)


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
