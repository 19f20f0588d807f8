"""A run's answer as HTML: the number large, its interval as a bar around 1, and in words how sure it is."""

from __future__ import annotations

from html import escape
from math import log

from playground.domain.record.run import Run
from playground.i18n import Locale, say
from playground.report.answer import Answer, answers_of
from playground.report.charts.chart import COLOURS

WIDTH, HEIGHT = 440, 44
# The axis shows at least this much on either side of 1.
LEAST_SPAN = log(1.25)
MARGIN = 34


def answer_html(run: Run, locale: Locale) -> str:
    """One row for each side that is compared; empty before there is a number."""
    return "".join(_row(run, answer, locale) for answer in answers_of(run))


def _row(run: Run, answer: Answer, locale: Locale) -> str:
    names = {"side": run.sides[answer.side].label, "baseline": run.sides[0].label}
    caption = escape(say("answer.caption", locale, **names))
    word = escape(say(f"answer.{answer.sureness}", locale))
    chart = interval_svg(answer, locale) if answer.interval is not None else ""
    return (
        f'<div class="answer-row" style="--side: {COLOURS[answer.side]}">'
        f'<div class="number"><strong>{ratio_text(answer.ratio)}</strong><span class="side">{caption}</span></div>'
        f'<div class="sureness" data-sureness="{answer.sureness}"><strong>{word}</strong>{chart}</div></div>'
    )


def ratio_text(ratio: float) -> str:
    """Three digits at most: the number is read from afar."""
    return f"{ratio:.0f}×" if ratio >= 100 else f"{ratio:.1f}×" if ratio >= 10 else f"{ratio:.2f}×"


def interval_svg(answer: Answer, locale: Locale) -> str:
    """The 95% interval on a logarithmic axis around 1."""
    assert answer.interval is not None
    low, high = answer.interval
    span = max(LEAST_SPAN, *(abs(log(end)) for end in (low, high, answer.ratio))) * 1.1

    def at(value: float) -> float:
        return round(WIDTH / 2 + log(value) / span * (WIDTH / 2 - MARGIN), 1)

    colour, middle = COLOURS[answer.side], at(1)
    name = escape(say("answer.interval", locale, ratio=answer.ratio, low=low, high=high), quote=True)
    slower, faster = (escape(say(f"answer.{side}", locale)) for side in ("worse", "better"))
    texts = [
        f'<text x="0" y="14" opacity=".7">← {slower}</text>',
        f'<text x="{WIDTH}" y="14" text-anchor="end" opacity=".7">{faster} →</text>',
        f'<text x="{middle}" y="42" text-anchor="middle">1×</text>',
    ]
    if at(high) - at(low) > 2 * MARGIN:
        ends = [(at(low), ratio_text(low)), (at(high), ratio_text(high))]
    else:
        ends = [(at(answer.ratio), f"{ratio_text(low)[:-1]}–{ratio_text(high)}")]
    # A text near 1 would run into that of the mark.
    texts += [
        f'<text x="{place}" y="42" text-anchor="middle">{text}</text>'
        for place, text in ends
        if abs(place - middle) > MARGIN
    ]
    return (
        f'<svg class="interval" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}" font-size="12" '
        f'fill="currentColor"><title>{name}</title>'
        f'<line x1="0" x2="{WIDTH}" y1="23" y2="23" stroke="currentColor" opacity=".25"/>'
        f'<line x1="{middle}" x2="{middle}" y1="6" y2="31" stroke="currentColor" stroke-width="2"/>'
        f'<rect x="{at(low)}" y="18" width="{max(3.0, at(high) - at(low)):.1f}" height="10" rx="3" '
        f'fill="{colour}" opacity=".55"/>'
        f'<circle cx="{at(answer.ratio)}" cy="23" r="6" fill="{colour}"/>{"".join(texts)}</svg>'
    )
