"""A sweep as sentences, and as the JSON document that `playground/schema.json` describes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from playground.domain.message import Message
from playground.domain.speculation.prediction import Prediction, accuracy, fit_costs
from playground.domain.speculation.theory import break_even, if_accepted, known_cost
from playground.domain.sweep.analysis import (
    PointResult,
    described,
    k_index,
    prediction_errors,
    predictions,
    results,
    sure_points,
    synthetic,
)
from playground.domain.sweep.budget import BESIDE, WORTH_S, Estimate
from playground.domain.sweep.recommendation import best_by_circumstance, recommendation
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale, say_message

from .claims import claim_of
from .documents import SCHEMA_VERSION, claim_document, message_document, side_figures_document, verdict_document
from .findings import sweep_findings

# Acceptance rates for which the conclusions say what they would bring: claimed to feel good, and high.
BETTER_DRAFTS = (0.6, 0.8)


def plan_sentences(told: Estimate) -> list[Message]:
    """What a sweep will take, and a warning where that is too little for a result."""
    source = (
        Message("sweep.starts_known", {"count": told.known_starts})
        if told.known_starts
        else Message("sweep.starts_guessed")
    )
    params: dict[str, object] = {
        "points": told.points,
        "starts": told.engine_starts,
        "start_s": told.start_s,
        "source": source,
        "point_s": told.point_s,
        "minutes": told.total_s / 60,
    }
    sentences = [Message("sweep.plan", params)]
    if told.fitting < told.points:
        sentences.append(Message("sweep.not_all_fit", {"fitting": told.fitting, "points": told.points}))
    if (rounds_s := told.point_s / (1 + BESIDE)) < WORTH_S:
        sentences.append(Message("sweep.tight", {"rounds_s": rounds_s}))
    return sentences


def conclusions_of(sweep: Sweep) -> list[Message]:
    """What a sweep comes to: the setting to deploy, how good the predictions were, what did not work, and what
    becomes of the claim that the preset is about."""
    found = results(sweep)
    sentences = [recommendation(sweep).reason] if any(point.sides for point in found) else []
    sentences += best_by_circumstance(sweep)
    if sweep.plan.search:
        sentences.append(searched(sweep))
    if synthetic(sweep):
        sentences.append(Message("sweep.is_synthetic"))
    else:
        sentences += _theory(sweep)
    if (told := accuracy(prediction_errors(sweep))) is not None:
        sentences.append(told)
    for point in found:
        if point.problem is not None:
            params = {"values": described(sweep, point.values), "cause": point.problem}
            sentences.append(Message("sweep.point_failed", params))
    if sweep.problem is not None:
        sentences.append(sweep.problem)
    claimed = claim_of(sweep)
    return sentences + (claimed.sentences() if claimed else [])


def searched(sweep: Sweep) -> Message:
    """How much of the grid a search has measured."""
    measured, points = sum(point.settled for point in sweep.points), sweep.plan.combinations
    params: dict[str, object] = {"measured": measured, "points": points, "percent": 100 * measured / points}
    return Message("search.measured", params)


def _theory(sweep: Sweep) -> list[Message]:
    """Where one side's k is varied: which acceptance the fastest k needs, what a better draft would bring, and
    whether the longest k goes too far."""
    groups = sure_points(sweep)
    if len(groups) != 1:
        return []
    [((label, _), measured)] = groups.items()
    if k_index(sweep, label) is None:
        return []
    points = [point for _, point in measured]
    best = max(points, key=lambda point: point.speed_up)
    sentences = [model.statement() for model in fit_costs(points)]
    if (cost := known_cost(best)) is not None:
        sentences += [break_even(best.k, cost), *(if_accepted(best.k, cost, rate) for rate in BETTER_DRAFTS)]
    return sentences + [sentence for found in sweep_findings(label, points) for sentence in found.sentences]


def plan_document(told: Estimate) -> dict[str, Any]:
    return {"schema": SCHEMA_VERSION, **asdict(told)}


def sweep_document(sweep: Sweep, locale: Locale = "en") -> dict[str, Any]:
    best, predicted = recommendation(sweep), predictions(sweep)
    errors = accuracy(prediction_errors(sweep))
    values: object = best.values
    if isinstance(best.values, tuple):
        values = _named(sweep, best.values)
    return {
        "schema": SCHEMA_VERSION,
        "run_id": sweep.id,
        "created_at": sweep.created_at,
        "status": sweep.status,
        "preset": sweep.preset,
        "objective": sweep.case.workload.objective,
        "search": sweep.plan.search,
        "synthetic": synthetic(sweep),
        "knobs": [
            {"name": knob.name, "side": knob.side, "values": list(knob.values)} for knob in sweep.plan.knobs
        ],
        "points": [_point(sweep, point, predicted, locale) for point in results(sweep)],
        "recommended": {"values": values, "side": best.side, "reason": say_message(best.reason, locale)},
        "prediction_error": None if errors is None else say_message(errors, locale),
        "claim": claim_document(claim_of(sweep), locale),
        "problem": message_document(sweep.problem, locale),
    }


def _point(
    sweep: Sweep, point: PointResult, predicted: dict[tuple[int, str], Prediction], locale: Locale
) -> dict[str, Any]:
    return {
        "values": _named(sweep, point.values),
        "run_id": point.run_id,
        "sides": {side.label: side_figures_document(side.figures) for side in point.sides},
        "predicted": {
            label: {"kind": found.kind, "speed_up": found.speed_up, "interval": found.interval}
            for (number, label), found in predicted.items()
            if number == point.number
        },
        "verdicts": [verdict_document(side.verdict, locale) for side in point.sides if side.verdict],
        "problem": message_document(point.problem, locale),
    }


def _named(sweep: Sweep, values: tuple[Any, ...]) -> dict[str, Any]:
    return {knob.key: value for knob, value in zip(sweep.plan.knobs, values, strict=True)}
