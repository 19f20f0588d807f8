"""What a reader sees of one side: its figures in a race, their limitations, and its answers."""

from __future__ import annotations

from collections.abc import Iterable

from playground.domain.message import Message
from playground.domain.record.metrics import (
    Acceptance,
    acceptance_between,
    acceptance_of,
    request_figures,
    side_figures,
)
from playground.domain.record.run import SideRecord, StartStage
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.spec.workload import Sampling
from playground.i18n import Locale, say

from .figures import RACE

LEAST_STAGE_S = 0.5


def race_figures(side: SideRecord, locale: Locale = "en") -> list[tuple[str, str, str]]:
    """Name, value with unit and definition of each. "-": unknown; "~": estimated while it streams, or from the
    final usage alone."""
    figures = side_figures(side)
    trace = side.requests[0] if side.requests else None
    request = request_figures(trace) if trace else None
    live = not trace or not trace.ended or (side.trials[-1].after is None and side.figures is None)
    acceptance = latest_acceptance(side)
    per_step = figures.tokens_per_step
    if side.settings.speculates and per_step is None and request and trace and len(trace.chunks) > 1:
        per_step = ((request.output_tokens or 0) - (trace.chunks[0].tokens or 0)) / (len(trace.chunks) - 1)
    estimated = "~" if live and side.settings.speculates and per_step is not None else ""
    approximate = "~" if request and request.approximate else ""
    values = {
        "decode_tokens_per_s": request.decode_tokens_per_s if request else None,
        "ttft_ms": request.ttft_ms if request else None,
        "tpot_ms": request.tpot_ms if request else None,
        "output_tokens": request.output_tokens if request else None,
        "tokens_per_step": per_step,
        "acceptance_rate": acceptance.rate if acceptance else figures.acceptance_rate,
        "mean_acceptance_length": acceptance.mean_length if acceptance else figures.mean_acceptance_length,
    }
    marks = {"decode_tokens_per_s": approximate, "tpot_ms": approximate, "tokens_per_step": estimated}
    return [
        (
            figure.label(locale),
            (marks.get(figure.id, "") if values[figure.id] is not None else "") + figure.text(values[figure.id]),
            figure.definition(locale),
        )
        for figure in RACE
    ]


def limitations(side: SideRecord, sampling: Sampling) -> list[Message]:
    """What a reader must know about the figures of this side."""
    if side.reported is not None:
        return [Message(f"reported.{side.reported.tool}")]
    if not isinstance(side.settings, AttachedEndpoint):
        return [Message("side.synthetic")] if side.settings.synthetic else []
    messages = [Message("side.counters_not_read")]
    if "cache_salt" in side.missing:
        messages.append(Message("side.not_salted"))
    names = [name for name in side.missing if name in Sampling.model_fields]
    if refused := [name for name in names if name != "ignore_eos" or sampling.ignore_eos]:
        messages.append(Message("side.refused", {"names": ", ".join(refused)}))
    return messages


def stages_text(stages: Iterable[StartStage], locale: Locale = "en") -> str:
    """Stages of a start with their seconds, those too short to matter left out."""
    return ", ".join(
        say("side.stage", locale, name=say(f"stage.{each.stage}", locale), seconds=each.seconds)
        for each in stages
        if each.seconds >= LEAST_STAGE_S
    )


def start_text(side: SideRecord, locale: Locale = "en") -> str | None:
    """Where the time of its engine's start went; None if none was started."""
    if not side.start:
        return None
    total_s = sum(each.seconds for each in side.start)
    return say("side.start", locale, seconds=total_s, stages=stages_text(side.start, locale))


def readable(side: SideRecord, answer: str, locale: Locale = "en") -> str:
    """An answer as it may be displayed: text from synthetic acceptance means nothing."""
    return say("side.synthetic_text", locale) if side.settings.synthetic else answer


def latest_acceptance(side: SideRecord) -> Acceptance | None:
    """The acceptance over all trials that have ended; during the first one, up to the latest sample."""
    resting = [trial for trial in side.trials if trial.after is not None]
    if resting or not side.trials or not side.samples:
        return acceptance_of(resting)
    return acceptance_between(side.trials[0].before, side.samples[-1].counters)
