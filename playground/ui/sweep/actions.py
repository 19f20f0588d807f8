"""The events of the What-if tab's buttons."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import gradio as gr

from playground import prompts
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Section
from playground.domain.spec.case import Case
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.budget import Estimate
from playground.domain.sweep.knob_text import parsed_values
from playground.domain.sweep.plan import MOST_SEARCHED, MOST_SWEPT, Knob, SweepPlan, points_of
from playground.domain.sweep.record import Sweep
from playground.domain.validation import validate
from playground.i18n import Locale, say, say_message
from playground.report.sweep import plan_sentences
from playground.runs.host import Host
from playground.runs.sweep import SweepRun, new_sweep, order_of
from playground.store import READERS, Summary
from playground.ui.compare import tab as compare_tab
from playground.ui.compare.tab import CompareTab
from playground.ui.live import follower
from playground.ui.shared import view
from playground.ui.shared.form_origin import preset_of
from playground.ui.shared.labels import visitor_locale
from playground.ui.shared.message import alert
from playground.ui.shared.visitor import visitor_of
from playground.workers import FORMS

from . import view as sweep_view
from .tab import KnobFields, SweepTab

logger = logging.getLogger(__name__)

# A sweep -> the updates that put its settings into the forms.
Fill = Callable[[Sweep, Locale], dict[Any, Any]]
UNFINISHED = ("stopped", "failed", "interrupted")


class BadKnob(Exception):
    """An error in one knob's fields."""

    def __init__(self, fields: KnobFields, error: InvalidInput) -> None:
        super().__init__(error)
        self.fields = fields
        self.error = error


def wire(tab: SweepTab, compare: CompareTab, host: Host, fill: Fill, filled: Sequence[Any]) -> None:
    """Connect the events. `fill` puts a sweep's settings into the forms, which changes `filled`."""
    sweeps = Sweeps(tab, compare, host, fill)
    inputs = tab.inputs() | compare.inputs()
    quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
    messages = [tab.message, *(fields.message for fields in tab.knobs)]
    buttons = [tab.start, tab.stop, tab.watch, tab.go_on]
    tab.show_plan.click(sweeps.plan, inputs, [*messages, tab.plan], **quiet)
    # What only looks, or stops, waits for no place in the queue.
    at_once: dict[str, Any] = {"show_progress": "hidden", "queue": False}
    started = followed_parts(tab)
    tab.start.click(sweeps.start, inputs, started, **quiet)
    both = [*dict.fromkeys([*started, *filled])]
    tab.go_on.click(sweeps.go_on, inputs, both, **quiet)
    tab.schedule.click(sweeps.schedule, {tab.sweep_id, tab.minutes}, both, **quiet)
    tab.follower.stop(sweeps.ended, None, [*buttons, tab.unfinished], **at_once)
    tab.follower.stop(sweeps.offer_schedule, tab.sweep_id, tab.schedule, **quiet)
    further = [part for fields in tab.knobs[MOST_SWEPT:] for part in (fields.row, fields.message)]
    tab.search.change(lambda on: [gr.update(visible=on)] * len(further), tab.search, further, **quiet)
    tab.stop.click(sweeps.stop, tab.sweep_id, tab.message, **at_once)
    arrived = [tab.base, tab.watch, tab.unfinished, tab.go_on, *(fields.side for fields in tab.knobs)]
    tab.tab.select(sweeps.arrive, inputs | {tab.sweep_id}, arrived, **quiet)
    view.emptied_by([tab.plan], tab.filled())
    sweep_view.wire(tab.view, host, tab.panes, tab.charts, tab.message)


def followed_parts(tab: SweepTab) -> list[Any]:
    """The components that change when a sweep is started or followed."""
    messages = [tab.message, *(fields.message for fields in tab.knobs)]
    live = [tab.follower, tab.player]
    buttons = [tab.start, tab.stop, tab.watch, tab.go_on, tab.schedule]
    return [*messages, *buttons, tab.sweep_id, *live, tab.plan]


def following(tab: SweepTab, sweep_id: str, *, own: bool = True) -> dict[Any, Any]:
    """Show the sweep as it goes on. It can be stopped if it is this visitor's `own`."""
    off = gr.update(interactive=False)
    return {
        tab.sweep_id: sweep_id,
        tab.follower: follower.following(sweep_id),
        tab.player: "",
        tab.start: off,
        tab.go_on: off,
        tab.schedule: gr.update(visible=False),
        tab.stop: gr.update(visible=own),
        tab.watch: gr.update(visible=False),
    }


class Sweeps:
    """The handlers."""

    def __init__(self, tab: SweepTab, compare: CompareTab, host: Host, fill: Fill) -> None:
        self._tab = tab
        self._compare = compare
        self._host = host
        self._fill = fill

    async def arrive(self, inputs: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        """Update the tab when it is opened: what the Compare tab holds, what runs, and what can be resumed."""
        tab, locale = self._tab, visitor_locale(request)
        running = self._running()
        updates: dict[Any, Any] = {
            tab.watch: gr.update(visible=running is not None and running.id != inputs[tab.sweep_id])
        }
        updates |= await self._unfinished(locale)
        try:
            case, base = await FORMS.run(compare_tab.read, self._compare, self._host, inputs)
        except PlaygroundError as error:
            return {**updates, tab.base: alert(error, locale)}
        labels = [side.label for side in case.sides]
        description = say("whatif.base", locale, preset=base.name, sides=" | ".join(labels))
        choices = [(say("whatif.each_side", locale), ""), *((name, name) for name in labels)]
        for fields in tab.knobs:
            value = inputs[fields.side] if inputs[fields.side] in labels else ""
            updates[fields.side] = gr.update(choices=choices, value=value)
        return {**updates, tab.base: f"<p>{escape(description)}</p>"}

    async def plan(self, inputs: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        locale = visitor_locale(request)
        try:
            sweep = await FORMS.run(self._read, inputs)
            estimate = await FORMS.run(self._host.estimate, sweep)
        except (PlaygroundError, BadKnob) as error:
            return {**self._messages(error, locale), self._tab.plan: ""}
        return {
            **self._messages(None, locale),
            self._tab.plan: await FORMS.run(_plan, sweep, estimate, locale),
        }

    async def start(self, inputs: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        locale = visitor_locale(request)
        try:
            return await self._begin(await FORMS.run(self._read, inputs), request)
        except (PlaygroundError, BadKnob) as error:
            return self._refused(error, locale)

    async def go_on(self, inputs: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        """Resume a sweep of the history, within the minutes that the page says."""
        locale, chosen = visitor_locale(request), inputs[self._tab.unfinished] or ""
        try:
            budget_s = _budget_s(inputs[self._tab.minutes])
            sweep = await READERS.run(self._host.history.sweep, chosen)
            if sweep is None:
                raise InvalidInput("sweep.no_such_sweep", id=chosen)
            if not sweep.remaining:
                raise InvalidInput("sweep.none_to_go", id=chosen)
            sweep.plan = sweep.plan.model_copy(update={"budget_s": budget_s})
            # What stands above its points is what they are of.
            return {**self._fill(sweep, locale), **await self._begin(sweep, request)}
        except PlaygroundError as error:
            return self._refused(error, locale)

    async def _begin(self, sweep: Sweep, request: gr.Request) -> dict[Any, Any]:
        tab, host, locale = self._tab, self._host, visitor_locale(request)
        host.open()
        sweep_run = await FORMS.run(host.sweep_run, sweep)
        estimate = await FORMS.run(host.estimate, sweep)
        await host.start(sweep_run, say("host.page", locale), owner=visitor_of(host.config, request))
        plan = await FORMS.run(_plan, sweep, estimate, locale)
        return {**self._messages(None, locale), **following(self._tab, sweep.id), tab.plan: plan}

    def _refused(self, error: PlaygroundError | BadKnob, locale: Locale) -> dict[Any, Any]:
        """Show the error. A sweep that another page started can be watched."""
        updates = {self._tab.sweep_id: "", self._tab.watch: gr.update(visible=self._running() is not None)}
        return {**self._messages(error, locale), **updates}

    async def stop(self, sweep_id: str, request: gr.Request) -> Any:
        sweep_run = self._host.followed_sweep(sweep_id)
        if sweep_run is None:
            return gr.skip()
        if not self._host.may_stop(sweep_run, visitor_of(self._host.config, request)):
            return alert(InvalidInput("host.not_yours"), visitor_locale(request))
        sweep_run.stop()
        return gr.skip()

    async def ended(self, request: gr.Request) -> dict[Any, Any]:
        """Update the tab once the sweep that this page follows has ended, if it follows one; another may be
        running."""
        tab, usable = self._tab, gr.update(interactive=True)
        updates = {tab.start: usable, tab.go_on: usable, tab.stop: gr.update(visible=False)}
        updates |= await self._unfinished(visitor_locale(request))
        updates[tab.go_on] |= usable
        return {**updates, tab.watch: gr.update(visible=self._running() is not None)}

    async def offer_schedule(self, sweep_id: str) -> dict[Any, Any]:
        """Offer to measure the schedule that the sweep proposes, if it does."""
        ended = self._host.followed_sweep(sweep_id)
        offered = ended is not None and await FORMS.run(_proposes, ended.sweep)
        return {self._tab.schedule: gr.update(visible=offered)}

    async def schedule(self, inputs: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        """Measure it against the best single k and off, within the minutes that the page says."""
        locale, chosen = visitor_locale(request), inputs[self._tab.sweep_id]
        try:
            earlier = await READERS.run(self._host.history.sweep, chosen)
            if earlier is None:
                raise InvalidInput("sweep.no_such_sweep", id=chosen)
            plan, case = await FORMS.run(lambda: SweepAnalysis.of(earlier).schedule_measurement())
            plan = plan.model_copy(update={"budget_s": _budget_s(inputs[self._tab.minutes])})
            sweep = new_sweep(plan, case)
            return {**self._fill(sweep, locale), **await self._begin(sweep, request)}
        except PlaygroundError as error:
            return self._refused(error, locale)

    def _running(self) -> SweepRun | None:
        latest = self._host.latest_sweep
        return latest if latest is not None and not latest.finished else None

    async def _unfinished(self, locale: Locale) -> dict[Any, Any]:
        try:
            summaries = await READERS.run(self._host.history.summaries)
        except PlaygroundError as error:
            # The History tab says so.
            logger.warning("no sweep can be resumed: %s", say_message(error))
            summaries = []
        unfinished = [line for line in summaries if line.mode == "sweep" and line.status in UNFINISHED]
        choices = [(_label(summary, locale), summary.id) for summary in unfinished]
        return {
            self._tab.unfinished: gr.update(
                choices=choices, value=choices[0][1] if choices else None, visible=bool(choices)
            ),
            self._tab.go_on: gr.update(visible=bool(choices)),
        }

    def _messages(self, error: PlaygroundError | BadKnob | None, locale: Locale) -> dict[Any, Any]:
        """The errors, beside the fields that they are about."""
        messages: dict[Any, Any] = {self._tab.message: "", **{fields.message: "" for fields in self._tab.knobs}}
        if isinstance(error, BadKnob):
            messages[error.fields.message] = alert(error.error, locale)
        elif error is not None:
            messages[self._tab.message] = alert(error, locale)
        return messages

    def _read(self, inputs: Mapping[Any, Any]) -> Sweep:
        """Raises InvalidInput, or BadKnob for an error in one knob's fields."""
        case, base = compare_tab.read(self._compare, self._host, inputs)
        search = bool(inputs[self._tab.search])
        filled = [
            fields
            for fields in self._tab.knobs[: MOST_SEARCHED if search else MOST_SWEPT]
            if any((inputs[part] or "").strip() for part in (fields.name, fields.values))
        ]
        if not filled:
            raise InvalidInput("whatif.no_knob")
        knobs = [_knob(fields, inputs, case, search) for fields in filled]
        values = {"knobs": knobs, "search": search, "budget_s": _budget_s(inputs[self._tab.minutes])}
        plan = validate(SweepPlan, values, where=Section.SWEEP)
        return new_sweep(plan, case, preset_of(case, base))


def _knob(fields: KnobFields, inputs: Mapping[Any, Any], case: Case, search: bool) -> Knob:
    """One knob, validated alone. Raises BadKnob."""
    name = (inputs[fields.name] or "").strip()
    try:
        if not name:
            raise InvalidInput("whatif.no_knob")
        values = parsed_values(name, inputs[fields.values] or "")
        if name == "prompts" and not {*values} <= {*prompts.names()}:
            # Visitors may name built-in prompts, and no file of this machine.
            raise InvalidInput("whatif.only_sets", known=", ".join(prompts.names()))
        knob = Knob(name=name, values=values, side=inputs[fields.side] or None)
        points_of(SweepPlan(knobs=(knob,), search=search), case)
    except InvalidInput as error:
        raise BadKnob(fields, error) from error
    return knob


def _proposes(sweep: Sweep) -> bool:
    return SweepAnalysis.of(sweep).recommendation.schedule is not None


def _budget_s(minutes: float | None) -> float:
    if not minutes or not 0 < minutes <= 7 * 1440:
        raise InvalidInput("cli.bad_minutes", value=minutes)
    return minutes * 60


def _label(summary: Summary, locale: Locale) -> str:
    when = summary.created_at.replace("T", " ")[:16]
    return " · ".join([when, summary.prompt, summary.preset or "-", say(f"race.{summary.status}", locale)])


def _plan(sweep: Sweep, estimate: Estimate, locale: Locale) -> str:
    """How long the sweep will take, and the points in the order of measurement."""
    sentences = "".join(f"<p>{escape(say_message(sentence, locale))}</p>" for sentence in plan_sentences(estimate))
    if sweep.plan.search:
        return sentences
    points = "".join(
        f"<li>{escape(sweep.plan.described(point.values))}</li>" for point in order_of(sweep).candidates
    )
    order = escape(say("whatif.order", locale))
    return f"{sentences}<details><summary>{order}</summary><ol>{points}</ol></details>"
