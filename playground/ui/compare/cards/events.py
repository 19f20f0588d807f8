"""Keeps the sides' cards true: they follow every change of a setting, and check themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.spec.case import Case, Side
from playground.i18n import Locale, say, say_message
from playground.report import expected
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.sides import preflight
from playground.ui.compare import side_form
from playground.ui.compare.cards import Checked, cards
from playground.ui.compare.controls import Controls
from playground.ui.compare.side_form import SideForm
from playground.ui.shared.form_origin import filled_from
from playground.ui.shared.labels import visitor_locale
from playground.workers import CHECKS, FORMS

Values = Mapping[Any, Any]
# A check asks the runtime, whose answer is not asked for again by every visitor at once.
KEPT_S, MOST_KEPT = 30, 32


class CardEvents:
    """The handlers. `read` turns the page's values into the run to check, `case_of` into what one is made of; both
    raise PlaygroundError."""

    def __init__(
        self,
        component: gr.HTML,
        sides: Sequence[SideForm],
        base: gr.Textbox,
        controls: Controls,
        host: Host,
        read: Callable[[Values], Comparison],
        case_of: Callable[[Values], Case],
    ) -> None:
        self._component = component
        self._sides = sides
        self._base = base
        self._controls = controls
        self._host = host
        self._read = read
        self._case_of = case_of
        self._kept: dict[str, tuple[float, Checked]] = {}
        self._lock = threading.Lock()

    def wire(self, edits: Sequence[Any], inputs: set[Any], further: Sequence[Any]) -> None:
        """Connect the events. `edits`: those that change, add and remove sides; `further`: the fields that say how
        long a run takes."""
        fields = [field for side in self._sides for field in side.fields.values()]
        labels = [side.fields["label"] for side in self._sides]
        outputs = [self._component, self._controls.outdated, *labels]
        quiet: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None}
        values: set[Any] = {self._base, self._controls.run_id, *fields}
        for event in edits:
            event.then(self.follow, values, outputs, trigger_mode="always_last", **quiet)
        asked = [self._component.submit, self._controls.follower.stop, *(field.input for field in further)]
        gr.on(asked, self.check, inputs, self._component, trigger_mode="always_last", **quiet)

    async def follow(self, values: Values, request: gr.Request) -> dict[Any, Any]:
        """What the form holds now, not checked yet."""
        locale = visitor_locale(request)
        try:
            sides, before = await FORMS.run(self._now, values)
        except PlaygroundError:
            # The buttons say it: the run that filled the fields is gone, or too many visitors wait.
            return {self._component: gr.skip()}
        names = {
            form.fields["label"]: gr.update(placeholder=side.label)
            for form, side in zip(self._sides, sides, strict=False)
            if isinstance(side, Side) and not side_form.typed_label(form, values)
        }
        outdated = self._outdated(sides, values[self._controls.run_id], locale)
        return {self._component: cards(sides, before, locale), self._controls.outdated: outdated, **names}

    def _outdated(self, sides: Sequence[Side | PlaygroundError], run_id: str, locale: Locale) -> str:
        """That the run below was of other sides, if so; nothing while it goes on, when forms are folded away."""
        below = self._host.followed(run_id)
        if below is None or not below.finished or not all(isinstance(side, Side) for side in sides):
            return ""
        now = [side.engine for side in sides if isinstance(side, Side)]
        if now == [side.settings for side in below.run.sides]:
            return ""
        return f'<p class="difference warn">{escape(say("card.outdated", locale))}</p>'

    async def check(self, values: Values, request: gr.Request) -> Any:
        """The same with the check's answer. Nothing is checked during a run, which needs the processor."""
        locale = visitor_locale(request)
        try:
            return await CHECKS.run(self._checked, values, locale)
        except PlaygroundError:
            # Too many checks wait; the buttons say what else there is.
            return gr.skip()

    def _now(self, values: Values) -> tuple[list[Side | PlaygroundError], Sequence[Side]]:
        before = filled_from(self._host, values[self._base]).sides
        return side_form.read_all(self._sides[: len(before)], values, before), before

    def _checked(self, values: Values, locale: Locale) -> str:
        sides, before = self._now(values)
        if not all(isinstance(side, Side) for side in sides):
            return cards(sides, before, locale)
        return cards(sides, before, locale, self._answer(values)) + self._expected(values, locale)

    def _expected(self, values: Values, locale: Locale) -> str:
        """What a run would take. Nothing during a run, and where settings can't be read: the buttons say it."""
        if self._host.pool.holder is not None:
            return ""
        try:
            expectation = self._host.expected(self._case_of(values))
        except PlaygroundError:
            return ""
        sentences = (
            expected.start_sentence(expectation),
            expected.measured_sentence(expectation),
            expected.prompts_sentence(expectation),
        )
        text = " ".join(say_message(sentence, locale) for sentence in sentences if sentence is not None)
        return f'<p class="expected">{escape(text)}</p>'

    def _answer(self, values: Values) -> Checked:
        if self._host.pool.holder is not None:
            return Checked()
        try:
            run = self._read(values).run
            key = repr([(side.settings, side.label) for side in run.sides]) + repr(run.workload.sampling)
            at, answer = self._kept.get(key, (0.0, None))
            if answer is None or time.monotonic() - at > KEPT_S:
                answer = Checked(preflight.examine(self._host.config, run, ask_hub=False))
                with self._lock:
                    self._kept.pop(key, None)
                    while len(self._kept) >= MOST_KEPT:
                        del self._kept[next(iter(self._kept))]
                    self._kept[key] = time.monotonic(), answer
        except PlaygroundError as error:
            return Checked(error=error)
        return answer
