"""The buttons that start, follow and stop a run, and what they do. What the run shows: ui/live/."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from playground.domain.errors import HostBusy, InvalidInput, PlaygroundError, WorkFailed
from playground.domain.record.run import Mode
from playground.i18n import LOCALES, say
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.ui.live import follower
from playground.ui.shared import message, save_buttons
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.visitor import visitor_of
from playground.workers import FORMS

# The page's values -> the run to start. Raises InvalidInput.
Reader = Callable[[Mapping[Any, Any], Mode], Comparison]
# An error and the page's values -> the field that the error is about, if that is known.
Locator = Callable[[PlaygroundError, Mapping[Any, Any]], message.FieldPlace | None]
# What stands below a button as soon as it is pressed.
TEXTS = {
    locale: f'<p role="status" class="waiting">{escape(say("race.asking", locale))}</p>' for locale in LOCALES
}
WAITING = f"() => ({json.dumps(TEXTS)})[document.querySelector('[data-locale]')?.dataset.locale ?? 'en']"


@dataclass
class Controls:
    """The buttons and messages. `mode` is that of the latest run that was started here: the one that waits in line
    if the engines are taken. `kept` saves a run as a file that the history could not save; `outdated` says that
    the sides were changed since the run that stands below."""

    race: gr.Button
    measure: gr.Button
    stop: gr.Button
    watch: gr.Button
    wait: gr.Button
    stop_engines: gr.Button
    message: gr.HTML
    mode: gr.State
    run_id: gr.State
    follower: gr.HTML
    player: gr.HTML
    kept: gr.HTML
    outdated: gr.HTML


def build(host: Host) -> Controls:
    with gr.Row(elem_id="run-bar"):
        race = gr.Button(label("race_button"), variant="primary", scale=2, min_width=110, elem_id="race")
        measure = gr.Button(
            label("measure_button"), variant="secondary", scale=2, min_width=110, elem_id="measure"
        )
        stop = gr.Button(label("stop"), variant="stop", visible=False, min_width=110, elem_id="stop")
        watch = gr.Button(label("watch"), visible=False, min_width=110, elem_id="watch")
        wait = gr.Button(label("wait"), visible=False, min_width=110, elem_id="wait")
        engines = gr.Button(label("stop_engines"), variant="secondary", min_width=110, elem_id="stop-engines")
    place, kept = message.build(), save_buttons.build(host, "unsaved")
    state = gr.State("race"), gr.State("")
    live = follower.build("compare"), follower.player("compare")
    outdated = gr.HTML(apply_default_css=False, elem_id="outdated")
    return Controls(race, measure, stop, watch, wait, engines, place, *state, *live, kept, outdated)


def wire(controls: Controls, host: Host, read: Reader, locate: Locator, inputs: set[Any]) -> None:
    """Connect the events. What only looks, or stops, waits for no place in the queue."""
    runs = Runs(controls, host, read, locate)
    started = followed_parts(controls)
    ended = [controls.race, controls.measure, controls.stop, controls.stop_engines, controls.kept]
    at_once: dict[str, Any] = {"show_progress": "hidden", "queue": False}
    for button, handler in (
        (controls.race, runs.race),
        (controls.measure, runs.measure),
        (controls.wait, runs.queue),
    ):
        # The page itself shows at once that it waits: before the first run the runtime is asked, which takes long.
        button.click(None, None, controls.message, js=WAITING, **at_once)
        button.click(handler, inputs, started, show_progress="hidden", concurrency_limit=None)
    controls.follower.stop(runs.ended, controls.run_id, ended, **at_once)
    controls.stop.click(runs.stop, controls.run_id, controls.message, **at_once)
    controls.stop_engines.click(runs.stop_engines, None, controls.message, queue=False)


def followed_parts(controls: Controls) -> list[Any]:
    """The components that change when a run is started or followed."""
    buttons = [
        controls.race,
        controls.measure,
        controls.stop,
        controls.stop_engines,
        controls.watch,
        controls.wait,
    ]
    shown = [controls.follower, controls.player, controls.message, controls.kept, controls.outdated]
    return [controls.run_id, controls.mode, *shown, *buttons]


def following(controls: Controls, run_id: str, *, running: bool, own: bool = True) -> dict[Any, Any]:
    """Show the run as it goes on, or nothing without one. `running`: none can be started, and it be stopped if it
    is this visitor's `own`."""
    changed: dict[Any, Any] = {
        controls.run_id: run_id,
        controls.follower: follower.following(run_id) if run_id else "",
        controls.player: "",
        controls.kept: "",
        controls.message: "",
        controls.outdated: "",
    }
    changed |= {controls.stop: gr.update(visible=running and own), controls.watch: gr.update(visible=False)}
    changed[controls.wait] = gr.update(visible=False)
    if running:
        off = gr.update(interactive=False)
        changed |= {button: off for button in (controls.race, controls.measure, controls.stop_engines)}
    return changed


def playing(controls: Controls, host: Host, kind: str, name: str) -> dict[Any, Any]:
    """Play a recording, or a run of the history, instead of following what is under way."""
    changed = following(controls, "", running=False)
    on = gr.update(interactive=True)
    changed |= {button: on for button in (controls.race, controls.measure, controls.stop_engines)}
    busy = host.latest is not None and not host.latest.finished
    return {**changed, controls.player: follower.playing(kind, name), controls.watch: gr.update(visible=busy)}


class Runs:
    """The handlers."""

    def __init__(self, controls: Controls, host: Host, read: Reader, locate: Locator) -> None:
        self._controls = controls
        self._host = host
        self._read = read
        self._locate = locate

    async def race(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(values, "race", request, wait=False)

    async def measure(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(values, "measured", request, wait=False)

    async def queue(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        return await self._begin(values, values[self._controls.mode], request, wait=True)

    async def _begin(
        self, values: Mapping[Any, Any], mode: Mode, request: gr.Request, wait: bool
    ) -> dict[Any, Any]:
        controls, locale = self._controls, visitor_locale(request)
        owner = visitor_of(self._host.config, request)
        try:
            self._host.open()
            # Prompts may come from a file, or be generated.
            comparison = await FORMS.run(self._read, values, mode)
            await self._host.start(comparison, say("host.page", locale), wait=wait, owner=owner)
        except PlaygroundError as error:
            offers = self._offers(busy=isinstance(error, HostBusy))
            places = list[message.FieldPlace | None]()
            with contextlib.suppress(WorkFailed):
                places = [await FORMS.run(self._locate, problem, values) for problem in error.all]
            alerts = message.alerts(error, locale, places)
            return {controls.run_id: "", controls.mode: mode, controls.message: alerts, **offers}
        return following(controls, comparison.run.id, running=True)

    def _offers(self, busy: bool) -> dict[Any, Any]:
        """Whether to offer watching: only a run of this process can be watched, whatever else is wrong."""
        controls, live = self._controls, self._host.latest
        can_watch = live is not None and not live.finished
        return {controls.watch: gr.update(visible=can_watch), controls.wait: gr.update(visible=busy)}

    async def ended(self, run_id: str, request: gr.Request) -> dict[Any, Any]:
        controls, unsaved = self._controls, self._host.unsaved_record(run_id)
        files = "" if unsaved is None else save_buttons.offers(unsaved, visitor_locale(request), load=False)
        changed = {button: gr.update(interactive=True) for button in (controls.race, controls.measure)}
        return {
            **changed,
            controls.stop: gr.update(visible=False),
            controls.stop_engines: gr.update(interactive=True),
            controls.kept: files,
        }

    async def stop(self, run_id: str, request: gr.Request) -> Any:
        comparison = self._host.followed(run_id)
        if comparison is None:
            return gr.skip()
        if not self._host.may_stop(comparison, visitor_of(self._host.config, request)):
            return message.alert(InvalidInput("host.not_yours"), visitor_locale(request))
        comparison.stop()
        return gr.skip()

    async def stop_engines(self, request: gr.Request) -> str:
        locale = visitor_locale(request)
        if self._host.pool.holder is not None:
            return f'<div class="alert"><p>{escape(say("ui.engines_busy", locale))}</p></div>'
        await self._host.pool.stop_all()
        return f"<p>{escape(say('ui.engines_stopped', locale))}</p>"
