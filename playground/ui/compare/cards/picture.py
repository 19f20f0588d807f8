"""The machine's GPUs as a picture: which side takes which, and what links them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import combinations

from playground.domain.sweep.knobs import LETTERS
from playground.engine.devices import FAR, Gpu, ranges
from playground.i18n import Locale, say
from playground.report.charts.chart import COLOURS
from playground.runs.sides.preflight import SideCheck

A_ROW = 8
WIDTH, HEIGHT, GAP, ABOVE, BELOW = 84, 62, 12, 42, 22


def cards_picture(checks: Sequence[SideCheck], gpus: Sequence[Gpu], locale: Locale) -> str:
    """Folded below one line of text that says the same; empty where there is no choice of GPUs."""
    taken = {index: check.placement.gpus for index, check in enumerate(checks) if check.placement is not None}
    chosen = {index: [gpu for gpu in gpus if gpu.index in cards] for index, cards in taken.items() if cards}
    if len(gpus) < 2 or not chosen:
        return ""
    sides = " · ".join(f"{LETTERS[index]} {_text(cards, locale)}" for index, cards in chosen.items())
    text = escape(say("preflight.cards", locale, sides=sides))
    places = {gpu.index: _place(number) for number, gpu in enumerate(gpus)}
    width, height = min(len(gpus), A_ROW) * (WIDTH + GAP), -(-len(gpus) // A_ROW) * (ABOVE + HEIGHT + BELOW)
    cards = "".join(
        _card(gpu, places[gpu.index], [index for index, own in chosen.items() if gpu in own], locale)
        for gpu in gpus
    )
    return (
        f'<details class="cards-picture"><summary>{text}</summary>'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{text}" '
        f'font-size="11" fill="currentColor">{"".join(_links(gpus, places))}{cards}</svg></details>'
    )


def _text(cards: Sequence[Gpu], locale: Locale) -> str:
    numbers = ranges(sorted(gpu.index for gpu in cards))
    if len(cards) == 1:
        return numbers
    farthest = max(first.distance(second.index) for first, second in combinations(cards, 2))
    link = "nvlink" if farthest == 0 else "near" if farthest < FAR else "far"
    return f"{numbers} ({say(f'preflight.link_{link}', locale)})"


def _place(number: int) -> tuple[int, int]:
    row, column = divmod(number, A_ROW)
    return column * (WIDTH + GAP), row * (ABOVE + HEIGHT + BELOW) + ABOVE


def _card(gpu: Gpu, place: tuple[int, int], sides: Sequence[int], locale: Locale) -> str:
    x, y = place
    marks = "".join(
        f'<rect x="{x + 6 + 19 * number}" y="{y + 24}" width="17" height="17" rx="3" fill="{COLOURS[side]}"/>'
        f'<text x="{x + 14.5 + 19 * number}" y="{y + 37}" text-anchor="middle" fill="#fff">{LETTERS[side]}</text>'
        for number, side in enumerate(sides)
    )
    note = "mig" if gpu.mig else "busy" if gpu.busy else ""
    notes = (
        f'<text x="{x + 6}" y="{y + 56}">{escape(say(f"preflight.card_{note}", locale))}</text>' if note else ""
    )
    if gpu.cores:
        cores = escape(say("preflight.card_cores", locale, cores=ranges(gpu.cores)))
        notes += f'<text x="{x}" y="{y + HEIGHT + 14}" opacity=".7">{cores}</text>'
    return (
        f"<g><title>{escape(gpu.name)}</title>"
        f'<rect x="{x + 0.5}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="none" stroke="currentColor" '
        f'opacity=".5"/><text x="{x + 6}" y="{y + 16}">GPU {gpu.index}</text>'
        f"{marks}{notes}</g>"
    )


def _links(gpus: Sequence[Gpu], places: dict[int, tuple[int, int]]) -> Iterator[str]:
    """NVLink as arcs; where it joins all, as a bar above each row."""
    joined = [pair for pair in combinations(gpus, 2) if pair[0].distance(pair[1].index) == 0]
    stroke = 'fill="none" stroke="currentColor" stroke-width="2" opacity=".6"'
    if len(gpus) > 2 and len(joined) == len(gpus) * (len(gpus) - 1) // 2:
        for top in sorted({y for _, y in places.values()}):
            ends = [x + WIDTH / 2 for x, y in places.values() if y == top]
            stems = "".join(f"M{x} {top}V{top - 12}" for x in ends)
            yield f'<path d="M{min(ends)} {top - 12}H{max(ends)}{stems}" {stroke}/>'
            yield f'<text x="{min(ends)}" y="{top - 18}">NVLink</text>'
        return
    for number, (first, second) in enumerate(joined):
        (x, y), (other, row) = places[first.index], places[second.index]
        start, end = x + WIDTH / 2, other + WIDTH / 2
        if y == row:
            yield f'<path d="M{start} {y}Q{(start + end) / 2} {y - 50} {end} {y}" {stroke}/>'
            if number == 0:
                yield f'<text x="{(start + end) / 2}" y="{y - 29}" text-anchor="middle">NVLink</text>'
