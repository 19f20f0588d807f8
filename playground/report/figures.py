"""A side's figures as a person reads them: name, value with unit, definition. The page, the command line and the
exported page show the same."""

from __future__ import annotations

from playground.domain.message import Message
from playground.domain.record.metrics import (
    Acceptance,
    acceptance_between,
    acceptance_of,
    request_figures,
    side_figures,
)
from playground.domain.record.run import SideRecord
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.spec.workload import Sampling
from playground.i18n import Locale, say

Fact = tuple[str, str, str]


def facts(side: SideRecord, locale: Locale = "en") -> list[Fact]:
    """In reading order. "-": unknown; "~": estimated while it streams, or from the final usage alone."""
    figures = side_figures(side)
    trace = side.requests[0] if side.requests else None
    own = request_figures(trace) if trace else None
    live = not trace or not trace.ended or side.trials[-1].after is None
    acceptance = latest_acceptance(side)
    per_step = figures.tokens_per_step
    if side.settings.speculates and per_step is None and own and trace and len(trace.chunks) > 1:
        per_step = ((own.output_tokens or 0) - (trace.chunks[0].tokens or 0)) / (len(trace.chunks) - 1)
    estimated = "~" if live and side.settings.speculates and per_step is not None else ""
    approximate = "~" if own and own.approximate else ""
    shown = (
        ("tokens_per_s", approximate + number(own.decode_tokens_per_s if own else None)),
        ("ttft", _milliseconds(own.ttft_ms if own else None)),
        ("tpot", approximate + _milliseconds(own.tpot_ms if own else None)),
        ("tokens", whole(own.output_tokens if own else None)),
        ("tokens_per_step", estimated + number(per_step)),
        ("acceptance", percent(acceptance.rate if acceptance else None)),
        ("acceptance_length", number(acceptance.mean_length if acceptance else None)),
    )
    return [(say(f"figure.{name}", locale), text, say(f"figure.{name}_help", locale)) for name, text in shown]


def limitations(side: SideRecord, asked: Sampling) -> list[Message]:
    """What a reader must know about the figures of this side."""
    if not isinstance(side.settings, AttachedEndpoint):
        return [Message("side.synthetic")] if side.settings.synthetic else []
    found = [Message("side.counters_not_read")]
    if "cache_salt" in side.missing:
        found.append(Message("side.not_salted"))
    names = [name for name in side.missing if name in Sampling.model_fields]
    if refused := [name for name in names if name != "ignore_eos" or asked.ignore_eos]:
        found.append(Message("side.refused", {"names": ", ".join(refused)}))
    return found


def readable(side: SideRecord, answer: str, locale: Locale = "en") -> str:
    """An answer as it may be shown: what was accepted without looking means nothing."""
    return say("side.synthetic_text", locale) if side.settings.synthetic else answer


def latest_acceptance(side: SideRecord) -> Acceptance | None:
    """Over all trials that have come to rest; during the first one up to the latest sample."""
    resting = [trial for trial in side.trials if trial.after is not None]
    if resting or not side.trials or not side.samples:
        return acceptance_of(resting)
    return acceptance_between(side.trials[0].before, side.samples[-1].counters)


def number(value: float | None) -> str:
    """Three significant digits, or "-"."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def whole(value: int | None) -> str:
    return "-" if value is None else str(value)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
