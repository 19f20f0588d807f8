"""The answer that a run gives: one number, how sure it is, and what to do next. The page and the saved page show
it first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from playground.domain.message import Message
from playground.domain.record.engine_path import PathDifference, listed, unset_differences
from playground.domain.record.metrics import request_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.domain.stats.verdicts import Verdict

Sureness = Literal["sure", "not_yet", "no_difference", "one_race"]


@dataclass(frozen=True, slots=True)
class Answer:
    """How the side at position `side` compares with the first one. `ratio`: how many times as good, with its 95%
    interval where there is one."""

    side: int
    ratio: float
    interval: tuple[float, float] | None
    sureness: Sureness


def answers_of(run: Run) -> list[Answer]:
    """One for each other side whose ratio is known; a race has them once it has ended."""
    if run.measurement is None:
        return _of_race(run) if run.status != "running" else []
    verdicts = enumerate(run_verdicts(run, rounds_of(run)), start=1)
    return [
        Answer(index, verdict.speed_up, verdict.interval, sureness(verdict))
        for index, verdict in verdicts
        if verdict.speed_up is not None
    ]


def sureness(verdict: Verdict) -> Sureness:
    """No difference is an answer only once the interval is narrow; before that nobody knows yet."""
    if verdict.verdict != "no clear difference":
        return "sure"
    settled = verdict.reason is not None and verdict.reason.kind == "no_difference_above"
    return "no_difference" if settled else "not_yet"


def race_sentences(run: Run) -> list[Message]:
    """What was observed in a race that has ended; none where a speed is unknown."""
    return [
        Message(
            "answer.race",
            {"side": run.sides[answer.side].label, "baseline": run.sides[0].label, "ratio": answer.ratio},
        )
        for answer in _of_race(run)
    ]


def next_steps(run: Run) -> list[Message]:
    """Why a race names no winner, and what would."""
    contended = any(side.contended for side in run.sides)
    return [Message("race.contended" if contended else "race.nearly_fair"), Message("answer.race_next")]


def unlike(run: Run) -> list[Message]:
    """A difference besides the settings: what the sides ran on, and how their engines work."""
    facts = {
        "version": [side.engine for side in run.sides if side.engine and side.engine.startswith("vLLM")],
        "device": [side.device for side in run.sides if side.device],
    }
    sentences = [
        Message(f"answer.unlike_{name}", {"values": " | ".join(values)})
        for name, values in facts.items()
        if len(set(values)) > 1 and len(values) == len(run.sides)
    ]
    for index, side in enumerate(run.sides[1:], start=1):
        if unset := unset_path(run, index):
            sides = {"side": side.label, "baseline": run.sides[0].label}
            sentences.append(Message("answer.unlike_path", {**sides, "parts": listed(unset)}))
    return sentences


def unset_path(run: Run, index: int) -> list[PathDifference]:
    """Where the engine of that side works otherwise than the first side's, though nobody set it."""
    settings, first, other = run.settings, run.sides[0], run.sides[index]
    return unset_differences((settings[0], settings[index]), (first.path, other.path))


def _of_race(run: Run) -> list[Answer]:
    speeds = [_speed(side) for side in run.sides]
    baseline = speeds[0] if speeds else None
    if not baseline:
        return []
    return [
        Answer(index, speed / baseline, None, "one_race")
        for index, speed in enumerate(speeds[1:], start=1)
        if speed is not None
    ]


def _speed(side: SideRecord) -> float | None:
    """Tokens a second of the side's only request."""
    return request_figures(side.requests[0]).decode_tokens_per_s if side.requests else None
