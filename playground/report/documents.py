"""A run as the JSON document that `playground/schema.json` describes: units in names, null for unknown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from playground.domain.answers.accuracy import is_right, run_accuracy
from playground.domain.answers.agreement import (
    Agreement,
    Difference,
    GreedyAgreement,
    SampledAgreement,
    run_agreements,
)
from playground.domain.answers.harness import harness_statements
from playground.domain.claims.claims import Claimed
from playground.domain.message import Message
from playground.domain.record.metrics import (
    RequestFigures,
    SideFigures,
    request_figures,
    side_figures,
    trace_figures,
)
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.domain.stats.verdicts import Verdict
from playground.engine.failures.remedies import change_label, remedy_of
from playground.i18n import Locale, say_message
from playground.runs.load_test import LoadTest
from playground.store import Summary

from .claims import claim_of
from .findings import Finding, findings

SCHEMA_VERSION = 1


def json_text(document: Any) -> str:
    """The document as it is printed and saved."""
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def compare_document(run: Run, locale: Locale = "en") -> dict[str, Any]:
    """A race has no rounds and no verdicts."""
    rounds = rounds_of(run)
    return {
        "schema": SCHEMA_VERSION,
        "run_id": run.id,
        "created_at": run.created_at,
        "status": run.status,
        "preset": run.preset,
        "mode": run.mode,
        "machine": run.machine,
        "workload": run.workload.model_dump(mode="json", exclude_none=True),
        "measurement": run.measurement.model_dump(mode="json", exclude_none=True) if run.measurement else None,
        "seed": run.seed,
        "problem": message_document(run.problem, locale),
        "sides": [_side(run, side, locale) for side in run.sides],
        "rounds": [{"round": each.number, "order": each.order, "values": each.values} for each in rounds],
        "verdicts": [verdict_document(verdict, locale) for verdict in run_verdicts(run, rounds)],
        "outputs": outputs_document(run_agreements(run), [side.label for side in run.sides], locale),
        "accuracy": _accuracy(run),
        "harness": _harness(run, locale),
        "claim": claim_document(claim_of(run), locale),
        "findings": [_finding(found, locale) for found in findings(run)],
    }


def load_document(driven: LoadTest) -> dict[str, Any]:
    return {
        "schema": SCHEMA_VERSION,
        "url": driven.endpoint.url,
        "model": driven.endpoint.model,
        "profile": driven.profile.model_dump(mode="json", exclude_none=True),
        "figures": side_figures_document(trace_figures(driven.traces)),
        "client_cpu_s": driven.client_cpu_s,
        "wall_s": driven.wall_s,
    }


def summary_document(summary: Summary) -> dict[str, Any]:
    return asdict(summary)


def outputs_document(
    found: Sequence[Agreement], labels: Sequence[str], locale: Locale = "en"
) -> list[dict[str, Any]]:
    """What a `compare` document says under `outputs`: nothing where nothing could be compared."""
    return [_agreement(agreement, labels, locale) for agreement in found]


def _agreement(found: Agreement, labels: Sequence[str], locale: Locale) -> dict[str, Any]:
    greedy = found if isinstance(found, GreedyAgreement) else None
    return {
        "side": labels[found.side],
        "baseline": labels[found.baseline],
        "compared": greedy and greedy.compared,
        "identical": greedy and greedy.identical,
        "near_tie_nats": greedy and greedy.near_tie_nats,
        "divergences": [_divergence(difference) for difference in greedy.differences] if greedy else [],
        "sampled": asdict(found.check) if isinstance(found, SampledAgreement) else None,
        "statement": message_document(found.statement(), locale),
    }


def _divergence(difference: Difference) -> dict[str, Any]:
    return {
        "prompt": difference.at.pair,
        "position": difference.at.position,
        "tokens": difference.at.tokens,
        "kind": difference.kind,
        "top": [top and sorted(top.items(), key=lambda item: -item[1]) for top in difference.top],
    }


def _accuracy(run: Run) -> dict[str, Any] | None:
    found, evidence = run_accuracy(run), run.accuracy
    if found is None or evidence is None:
        return None
    labels = [side.label for side in run.sides]
    tasks = [
        {
            "question": task.question,
            "accepted": task.accepted,
            "answers": given,
            "right": [None if answer is None else is_right(task, answer) for answer in given],
        }
        for task, *given in zip(evidence.tasks, *evidence.answers, strict=True)
    ]
    return {
        "sides": [{**asdict(one), "side": labels[one.side], "share": one.share} for one in found.sides],
        "differences": [
            {
                **asdict(one),
                "side": labels[one.side],
                "baseline": labels[one.baseline],
                "difference": one.difference,
            }
            for one in found.differences
        ],
        "tasks": tasks,
    }


def _harness(run: Run, locale: Locale) -> dict[str, Any] | None:
    found, labels = run.harness, [side.label for side in run.sides]
    if found is None:
        return None
    return {
        "version": found.version,
        "problem": message_document(found.problem, locale),
        "scores": [
            {
                "task": own.task,
                "metric": own.metric,
                "higher_is_better": own.higher_is_better,
                "scores": dict(zip(labels, own.scores, strict=True)),
            }
            for own in found.scores
        ],
        "statements": [say_message(sentence, locale) for sentence in harness_statements(run)],
    }


def verdict_document(verdict: Verdict, locale: Locale) -> dict[str, Any]:
    return {
        **asdict(verdict),
        "reason": None if verdict.reason is None else say_message(verdict.reason, locale),
    }


def claim_document(claimed: Claimed | None, locale: Locale) -> dict[str, Any] | None:
    if claimed is None:
        return None
    return {
        "claim": say_message(claimed.claim, locale),
        "measured": say_message(claimed.measured, locale),
        "outcome": claimed.standing,
        "reason": None if claimed.reason is None else say_message(claimed.reason, locale),
    }


def _finding(found: Finding, locale: Locale) -> dict[str, Any]:
    evidence, meaning, remedy = (say_message(sentence, locale) for sentence in found.sentences)
    return {
        "rule": found.rule,
        "side": found.side,
        "evidence": evidence,
        "meaning": meaning,
        "remedy": remedy,
        "change": asdict(found.change) if found.change else None,
    }


def _side(run: Run, side: SideRecord, locale: Locale) -> dict[str, Any]:
    return {
        "label": side.label,
        "settings": side.settings.model_dump(mode="json", exclude_none=True),
        "runtime": {"version": side.runtime_version, "device": side.device, "placement": side.placement or None},
        "command": side.command or None,
        "contended": side.contended,
        "profile": side.profile.model_dump(mode="json", exclude_none=True) if side.profile else None,
        "missing": list(side.missing),
        "figures": side_figures_document(side_figures(side, run.measurement.limits if run.measurement else None)),
        "requests": [
            {"round": trial.round, **_request(trace, locale)} for trial in side.trials for trace in trial.requests
        ],
        "problem": message_document(side.problem, locale),
        "remedy": _remedy(side, locale),
    }


def _remedy(side: SideRecord, locale: Locale) -> dict[str, Any] | None:
    remedy = remedy_of(side)
    if remedy is None:
        return None
    changes = [
        {"key": change.key, "value": change.value, "label": say_message(change_label(change), locale)}
        for change in remedy.changes
    ]
    return {"advice": say_message(remedy.advice, locale), "changes": changes}


def side_figures_document(figures: SideFigures) -> dict[str, Any]:
    document = asdict(figures)
    document["errors"] = {name.removeprefix("stream."): count for name, count in figures.errors.items()}
    return document


def _request(trace: RequestTrace, locale: Locale) -> dict[str, Any]:
    return {
        "prompt": trace.conversation[-1].content,
        "output_text": trace.output_text,
        "token_ids": trace.token_ids,
        "output_tokens": trace.counted_tokens,
        "finish_reason": trace.finish_reason,
        "chunks": [[round(chunk.ms, 3), chunk.tokens] for chunk in trace.chunks],
        "figures": _request_figures(request_figures(trace)),
        "problem": message_document(trace.problem, locale),
    }


def _request_figures(figures: RequestFigures) -> dict[str, Any]:
    document = asdict(figures)
    # One value a token and a gap a chunk: both follow from `chunks`.
    del document["itl_ms"], document["chunk_gap_ms"]
    return document


def message_document(problem: Message | None, locale: Locale) -> dict[str, str] | None:
    if problem is None:
        return None
    return {"id": problem.message_id, "message": say_message(problem, locale)}
