"""A sweep as sentences, and as a JSON document."""

from __future__ import annotations

from typing import Any

from playground.domain.message import Message
from playground.domain.speculation.prediction import accuracy, fit_costs
from playground.domain.speculation.theory import break_even, if_accepted, known_cost
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.budget import BESIDE, Estimate
from playground.domain.sweep.highest_load import HighestLoad
from playground.domain.sweep.nodes import NodeAgreement, node_of
from playground.domain.sweep.record import Sweep
from playground.domain.sweep.result import PointResult
from playground.i18n import Locale, say_message
from playground.report.claims import claim_of
from playground.report.documents.parts import (
    SCHEMA_VERSION,
    claim_document,
    message_document,
    side_figures_document,
    verdict_document,
)
from playground.report.documents.sweep import (
    HighestLoadDocument,
    NodeDocument,
    NodeRatioDocument,
    PointDocument,
    RecommendedDocument,
    SweepDocument,
    SweepPlanDocument,
)
from playground.report.findings import sweep_findings

# Acceptance rates for which the conclusions state the speed-up: claimed to feel good, and high.
BETTER_DRAFTS = (0.6, 0.8)


def plan_sentences(estimate: Estimate) -> list[Message]:
    """The duration of a sweep, and a warning where its budget is too small for a result."""
    source = (
        Message("sweep.starts_known", {"count": estimate.known_starts})
        if estimate.known_starts
        else Message("sweep.starts_guessed")
    )
    params: dict[str, object] = {
        "points": estimate.points,
        "starts": estimate.engine_starts,
        "start_s": estimate.start_s,
        "source": source,
        "point_s": estimate.point_s,
        "minutes": estimate.total_s / 60,
    }
    sentences = [Message("sweep.plan", params)]
    if estimate.fitting < estimate.points:
        sentences.append(Message("sweep.not_all_fit", {"fitting": estimate.fitting, "points": estimate.points}))
    if (rounds_s := estimate.point_s / (1 + BESIDE)) < estimate.worth_s:
        sentences.append(Message("sweep.tight", {"rounds_s": rounds_s}))
    return sentences


def conclusions_of(analysis: SweepAnalysis) -> list[Message]:
    """The conclusions of a sweep: the setting to deploy, how good the predictions were, what failed, and whether
    the preset's claim holds."""
    sweep = analysis.sweep
    sentences = [analysis.recommendation.reason] if any(point.sides for point in analysis.points) else []
    sentences += [node.statement for node in analysis.nodes]
    sentences += analysis.best_by_circumstance
    sentences += [_highest(analysis, load) for load in analysis.highest_loads]
    if sweep.plan.search:
        sentences.append(searched(sweep))
    if sweep.synthetic:
        sentences.append(Message("sweep.is_synthetic"))
    else:
        sentences += _theory(analysis)
    if (errors := accuracy(analysis.prediction_errors)) is not None:
        sentences.append(errors)
    for point in analysis.points:
        if point.problem is not None:
            params = {"values": sweep.plan.described(point.values), "cause": point.problem}
            sentences.append(Message("sweep.point_failed", params))
    if sweep.problem is not None:
        sentences.append(sweep.problem)
    claimed = claim_of(sweep)
    return sentences + (claimed.sentences() if claimed else [])


def _highest(analysis: SweepAnalysis, highest: HighestLoad) -> Message:
    unit = Message(f"highest.{analysis.sweep.plan.knobs[0].name}")
    params: dict[str, object] = {"side": highest.side, "unit": unit}
    if highest.load is None:
        known = {"at_least": highest.at_least, "below": highest.below}
        kind = "open" if highest.below is None else "none" if highest.at_least is None else "between"
        return Message(f"highest.{kind}", params | {name: value or 0 for name, value in known.items()})
    low, high = highest.load.interval
    params |= {"load": highest.load.value, "low": low, "high": high}
    if highest.ratio is None:
        return Message("highest.load", params)
    ratio, (least, most) = highest.ratio.value, highest.ratio.interval
    baseline = analysis.labels[0]
    params |= {"baseline": baseline, "ratio": ratio, "least": least, "most": most}
    return Message("highest.compared", params)


def searched(sweep: Sweep) -> Message:
    """How much of the grid a search has measured."""
    measured, points = sum(point.settled for point in sweep.points), sweep.plan.combinations
    params: dict[str, object] = {"measured": measured, "points": points, "percent": 100 * measured / points}
    return Message("search.measured", params)


def _theory(analysis: SweepAnalysis) -> list[Message]:
    """Where one side's k is varied: the acceptance that the fastest k needs, the speed-up of a better draft, and
    whether the longest k goes too far."""
    if len(analysis.certain_series) != 1:
        return []
    [series] = analysis.certain_series
    if series.k_index is None:
        return []
    points = list(series.points.values())
    best = max(points, key=lambda point: point.speed_up)
    sentences = [model.statement() for model in fit_costs(points)]
    if (cost := known_cost(best)) is not None:
        sentences += [break_even(best.k, cost), *(if_accepted(best.k, cost, rate) for rate in BETTER_DRAFTS)]
    findings = sweep_findings(series.label, points)
    return sentences + [sentence for finding in findings for sentence in finding.sentences]


def plan_document(estimate: Estimate) -> SweepPlanDocument:
    return {
        "schema": SCHEMA_VERSION,
        "points": estimate.points,
        "fitting": estimate.fitting,
        "engine_starts": estimate.engine_starts,
        "start_s": estimate.start_s,
        "known_starts": estimate.known_starts,
        "point_s": estimate.point_s,
        "total_s": estimate.total_s,
    }


def sweep_document(analysis: SweepAnalysis, locale: Locale = "en") -> SweepDocument:
    sweep, best = analysis.sweep, analysis.recommendation
    errors = accuracy(analysis.prediction_errors)
    runs = [point.run for point in analysis.points if point.run is not None]
    values = _named(sweep, best.values) if isinstance(best.values, tuple) else best.values
    reason = say_message(best.reason, locale)
    recommended: RecommendedDocument = {"values": values, "side": best.side, "reason": reason}
    if best.schedule is not None:
        recommended["schedule"] = [list(part) for part in best.schedule.ranges]
    document: SweepDocument = {
        "schema": SCHEMA_VERSION,
        "run_id": sweep.id,
        "created_at": sweep.created_at,
        "status": sweep.status,
        "preset": sweep.preset,
        "objective": sweep.case.workload.objective,
        "search": sweep.plan.search,
        "synthetic": sweep.synthetic,
        "plan": sweep.plan.model_dump(mode="json", exclude_none=True),
        "case": sweep.case.model_dump(mode="json", exclude_none=True),
        "machine": runs[0].machine if runs else {},
        "versions": {side.label: side.runtime_version for side in runs[0].sides if side.runtime_version}
        if runs
        else {},
        "knobs": [
            {"name": knob.name, "side": knob.side, "values": list(knob.values)} for knob in sweep.plan.knobs
        ],
        "points": [_point(analysis, point, locale) for point in analysis.points],
        "recommended": recommended,
        "highest_load": [_highest_document(load) for load in analysis.highest_loads],
        "prediction_error": None if errors is None else say_message(errors, locale),
        "claim": claim_document(claim_of(sweep), locale),
        "problem": message_document(sweep.problem, locale),
    }
    if analysis.nodes:
        document["nodes"] = [_node(agreement) for agreement in analysis.nodes]
    return document


def _node(agreement: NodeAgreement) -> NodeDocument:
    ratios: dict[str, NodeRatioDocument] = {
        ratio.side: {"ratio": ratio.ratio, "interval": ratio.interval} for ratio in agreement.ratios
    }
    return {"node": agreement.node, "first": agreement.first, "pooled": agreement.pooled, "ratios": ratios}


def _point(analysis: SweepAnalysis, point: PointResult, locale: Locale) -> PointDocument:
    document: PointDocument = {
        "values": _named(analysis.sweep, point.values),
        "run_id": point.run_id,
        "sides": {side.label: side_figures_document(side.figures) for side in point.sides},
        "predicted": {
            label: {"kind": known.kind, "speed_up": known.speed_up, "interval": known.interval}
            for (number, label), known in analysis.predictions.items()
            if number == point.number
        },
        "verdicts": [verdict_document(side.verdict, locale) for side in point.sides if side.verdict],
        "problem": message_document(point.problem, locale),
    }
    if node := node_of(point.run):
        document["node"] = node
    return document


def _highest_document(highest: HighestLoad) -> HighestLoadDocument:
    return {
        "side": highest.side,
        "load": highest.load.value if highest.load else None,
        "interval": highest.load.interval if highest.load else None,
        "at_least": highest.at_least,
        "below": highest.below,
        "ratio": highest.ratio.value if highest.ratio else None,
        "ratio_interval": highest.ratio.interval if highest.ratio else None,
    }


def _named(sweep: Sweep, values: tuple[Any, ...]) -> dict[str, Any]:
    return {knob.key: value for knob, value in zip(sweep.plan.knobs, values, strict=True)}
