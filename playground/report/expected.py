"""What a run will take, before it begins: as sentences, and as a JSON document."""

from __future__ import annotations

from playground.domain.message import Message
from playground.domain.spec.measurement import MIN_ROUNDS, SyntheticPrompts
from playground.runs.expected import Expected

from .documents.others import ComparePlanDocument
from .documents.parts import SCHEMA_VERSION


def start_sentence(expected: Expected) -> Message:
    """How long the engines take to start."""
    if not expected.starts:
        return Message("expected.no_starts")
    source = Message("expected.guessed")
    if expected.known_starts:
        source = Message("expected.known", {"count": expected.known_starts})
    return Message("expected.starts", {"time": _time(expected.starts_s), "source": source})


def measured_sentence(expected: Expected) -> Message:
    """How long a measurement takes, and whether its budget is too small for an interval."""
    most = _time(expected.most_s)
    if expected.least_s is None or expected.rounds is None:
        return Message("expected.measured_at_most", {"most": most})
    if expected.rounds < MIN_ROUNDS:
        budget, needed = expected.measurement.budget_s, expected.needed_s
        rounds: dict[str, object] = {"rounds": expected.rounds, "least": MIN_ROUNDS, "needed": needed}
        return Message("expected.short", {"most": most, "budget": budget, **rounds})
    return Message("expected.measured", {"least": _time(expected.least_s), "most": most})


def prompts_sentence(expected: Expected) -> Message | None:
    """What a measurement sends, where that is not the prompt of a race."""
    prompts = expected.measurement.prompts
    if prompts is None:
        return None
    if isinstance(prompts, SyntheticPrompts):
        return Message("expected.sends_synthetic", {"count": prompts.count, "tokens": prompts.input_tokens})
    return Message("expected.sends", {"source": prompts.rsplit("/", 1)[-1]})


def document(expected: Expected) -> ComparePlanDocument:
    return {
        "schema": SCHEMA_VERSION,
        "engine_starts": expected.starts,
        "starts_s": expected.starts_s,
        "known_starts": expected.known_starts,
        "round_s": expected.round_s,
        "rounds": expected.rounds,
        "least_s": expected.least_s,
        "most_s": expected.most_s,
    }


def _time(seconds: float) -> Message:
    if seconds < 100:
        return Message("expected.seconds", {"seconds": seconds})
    return Message("expected.minutes", {"minutes": seconds / 60})
