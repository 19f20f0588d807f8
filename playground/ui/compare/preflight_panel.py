"""The results of "Check first": for each side whether it fits, how its memory is divided, and whether its pair
works."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.domain.fit.memory import GIB, Need
from playground.engine import devices
from playground.i18n import Locale, say
from playground.report import preflight as report
from playground.report.charts.chart import COLOURS
from playground.runs.comparison import Comparison
from playground.runs.sides import preflight
from playground.runs.sides.preflight import SideCheck
from playground.ui.compare.cards.picture import cards_picture
from playground.ui.shared.labels import label, visitor_locale
from playground.ui.shared.message import alert
from playground.workers import CHECKS

# The same colours on every side, even where a part is missing.
PART_COLOURS = dict(zip((*report.FIXED_PARTS, "kv_cache"), (*COLOURS, "#999999", "#56B4E9"), strict=True))


@dataclass
class Panel:
    """The components."""

    button: gr.Button
    result: gr.HTML


def build() -> Panel:
    button = gr.Button(
        label("check_first"), variant="secondary", size="sm", elem_id="check-first", elem_classes="setup"
    )
    return Panel(button, gr.HTML(apply_default_css=False, elem_id="preflight"))


def wire(panel: Panel, config: Config, read: Callable[[Mapping[Any, Any]], Comparison], inputs: set[Any]) -> None:
    """Connect the events. `read`: the page's values -> the run to check; raises PlaygroundError."""

    def check(values: Mapping[Any, Any], locale: Locale) -> str:
        try:
            checks = preflight.examine(config, read(values).run)
            return cards(checks, locale) + cards_picture(checks, devices.machine().gpus, locale)
        except PlaygroundError as error:
            return alert(error, locale)

    async def on_check(values: Mapping[Any, Any], request: gr.Request) -> str:
        locale = visitor_locale(request)
        try:
            return await CHECKS.run(check, values, locale)
        except PlaygroundError as error:
            return alert(error, locale)

    panel.button.click(on_check, inputs, panel.result, concurrency_limit=None)


def cards(checks: Sequence[SideCheck], locale: Locale) -> str:
    """All sides, on one scale."""
    largest = max((max(check.need.budget, check.need.reserved) for check in checks if check.need), default=1)
    sections = "".join(_card(check, largest, locale) for check in checks)
    return (
        f'<div class="preflight">{sections}</div><p class="note">{escape(say("preflight.estimate", locale))}</p>'
    )


def _card(check: SideCheck, largest: int, locale: Locale) -> str:
    lines = "".join(f"<p>{escape(line)}</p>" for line in report.memory_lines(check, locale))
    reasons = "".join(
        f'<li class="{issue.level}">{escape(reason)}</li>'
        for issue, reason in zip(check.issues, report.reasons(check, locale), strict=True)
    )
    bar = _bar(check.need, largest, locale) if check.need is not None else ""
    title = f"<h3>{escape(check.label)}</h3><p><strong>{escape(report.headline(check, locale))}</strong></p>"
    return f"<section>{title}{bar}{lines}<ul>{reasons}</ul></section>"


def _bar(need: Need, largest: int, locale: Locale) -> str:
    """The parts side by side, the budget's end as a line, and a legend with the numbers."""
    pieces, legend = "", ""
    for name, size in report.parts(need).items():
        colour = PART_COLOURS[name]
        text = escape(say("preflight.part", locale, name=say(f"preflight.{name}", locale), gib=size / GIB))
        pieces += f'<span style="width:{100 * size / largest:.2f}%;background:{colour}" title="{text}"></span>'
        legend += f'<span style="--side:{colour}" class="side">{text}</span>'
    end = f'<i style="left:{100 * need.budget / largest:.2f}%"></i>'
    return f'<div class="memory" aria-hidden="true">{pieces}{end}</div><div class="memory-legend">{legend}</div>'
