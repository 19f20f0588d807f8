"""The card of each side: what defines it, what differs, whether it fits. A click on a value opens its field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape

import gradio as gr

from playground.domain.errors import PlaygroundError
from playground.domain.spec.case import Side
from playground.domain.spec.change import Value
from playground.domain.spec.difference import METHOD, Difference, K, cleared, differences, settings_of
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.sweep.knobs import LETTERS
from playground.engine.kinds.table import KINDS
from playground.i18n import Locale, say, say_message
from playground.report import preflight as report
from playground.report.charts.chart import COLOURS
from playground.runs.sides.preflight import SideCheck
from playground.ui.compare import side_form
from playground.ui.compare.side_values import lacking
from playground.ui.shared import view
from playground.ui.shared.field_names import name_of, value_text
from playground.ui.shared.message import alerts

SEQUENCES, SHARE = "knobs.max_num_seqs", "knobs.gpu_memory_utilization"
DRAFT = "speculation.model"
# What a card always shows, as far as the method has it.
ENGINE = ("target", METHOD, DRAFT, K, SEQUENCES, SHARE, "knobs.dtype", "runtime")
ENDPOINT = ("base_url", "model", "api")
# What a narrow card shows of what does not differ.
MAIN = {"target", METHOD, "base_url", "model"}


@dataclass(frozen=True)
class Checked:
    """What the check said: of each side, or why nothing can be said. Neither: it was left out during a run."""

    sides: Sequence[SideCheck] = ()
    error: PlaygroundError | None = None


def build(value: str) -> gr.HTML:
    """The component. It triggers `submit` a moment after it has shown sides that were not checked."""
    return gr.HTML(
        value,
        js_on_load=f"{view.asset('place.js')}\n{view.asset('cards.js')}",
        apply_default_css=False,
        elem_id="side-cards",
    )


def cards(
    sides: Sequence[Side | PlaygroundError], before: Sequence[Side], locale: Locale, checked: Checked | None = None
) -> str:
    """All cards and what differs. `sides` holds an error in the place of one that can't be read; `before`: what
    the fields were filled from; `checked` is None before the check."""
    readable = [side for side in sides if isinstance(side, Side)]
    table = differences(readable) if len(readable) == len(sides) else {}
    sections = "".join(
        _card(index, side, table, _state(index, checked, locale) if len(readable) == len(sides) else "", locale)
        if isinstance(side, Side)
        else _unreadable(index, side, before[index].label, locale)
        for index, side in enumerate(sides)
    )
    lines = f'<p class="difference">{escape(say("card.unread", locale))}</p>'
    if len(readable) == len(sides):
        lines = _difference(table, locale) + _cleared(cleared(readable, before), locale)
    waiting = ""
    if len(readable) == len(sides):
        waiting = " data-unchecked" if checked is None else " data-busy" if checked == Checked() else ""
    return f'<div class="side-cards"{waiting}>{sections}</div>{lines}'


def _card(index: int, side: Side, table: Difference, state: str, locale: Locale) -> str:
    values = settings_of(side)
    keys = ENDPOINT if isinstance(side.engine, AttachedEndpoint) else ENGINE
    lacks = {f"knobs.{name}" for name in lacking(KINDS.get(str(values.get("runtime"))))}
    listed = [key for key in keys if key in values or (key.startswith("knobs.") and key not in lacks)]
    items = "".join(_item(index, key, values.get(key), key in table, locale) for key in listed)
    return (
        f'<section style="--side:{COLOURS[index]}">'
        f'<header><h3 aria-level="2">{_title(index, side.label)}</h3>{state}</header>'
        f'<div class="items">{items}</div></section>'
    )


def _title(index: int, label: str) -> str:
    return f'<span class="side">{LETTERS[index]}</span> {escape(label)}'


def _item(index: int, key: str, value: Value, differs: bool, locale: Locale) -> str:
    name, text = name_of(key, locale), value_text(key, value, locale)
    kinds = " ".join(kind for kind, holds in (("differs", differs), ("main", key in MAIN)) if holds)
    change = say("card.edit", locale, name=name, side=LETTERS[index])
    return (
        f'<button type="button" class="{kinds}" title="{escape(change)}" data-at="{_place(index, key)}">'
        f"<span>{escape(name)}</span><b>{escape(text)}</b></button>"
    )


def _place(index: int, key: str) -> str:
    return escape(json.dumps(asdict(side_form.place_of(index, key))))


def _unreadable(index: int, error: PlaygroundError, label: str, locale: Locale) -> str:
    """`label`: the one before."""
    head = f'<header><h3 aria-level="2">{_title(index, label)}</h3></header>'
    return f'<section style="--side:{COLOURS[index]}">{head}{alerts(error, locale)}</section>'


def _state(index: int, checked: Checked | None, locale: Locale) -> str:
    if checked is None:
        hint = escape(say("card.checking_first", locale))
        return f'<span class="check" title="{hint}">{escape(say("card.checking", locale))}</span>'
    if checked.error is not None:
        return _details("unknown", say("card.unchecked", locale), [say_message(checked.error, locale)])
    if not checked.sides:
        return f'<span class="check">{escape(say("card.busy", locale))}</span>'
    check = checked.sides[index]
    lines = [*report.memory_lines(check, locale), *report.reasons(check, locale)]
    kind = {True: "fits", False: "not", None: "unknown"}[check.fits]
    kind = "not" if any(issue.level == "blocking" for issue in check.issues) else kind
    return _details(kind, report.headline(check, locale), lines)


def _details(kind: str, headline: str, lines: Iterable[str]) -> str:
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f'<details class="check {kind}"><summary>{escape(headline)}</summary><div>{text}</div></details>'


def _difference(table: Difference, locale: Locale) -> str:
    parts = [
        f"{escape(name_of(key, locale))}: "
        + " | ".join(f"<b>{escape(value_text(key, value, locale))}</b>" for value in row)
        for key, row in table.items()
    ]
    text = "; ".join(parts) or escape(say("card.nothing", locale))
    return f'<p class="difference">{escape(say("card.differs", locale))} {text}</p>'


def _cleared(table: Difference, locale: Locale) -> str:
    if not table:
        return ""
    names = ", ".join(name_of(key, locale) for key in table)
    return f'<p class="difference warn">{escape(say("card.cleared", locale, names=names))}</p>'
