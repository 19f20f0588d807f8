"""What a measured run comes to, as sentences. The page, the command line and the exported page show the same."""

from __future__ import annotations

from playground.domain.answers.accuracy import statements
from playground.domain.answers.agreement import run_agreements
from playground.domain.answers.harness import harness_statements
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.stats.rounds import ending, rounds_of, run_verdicts
from playground.domain.stats.verdicts import compare, headline

from .claims import claim_of
from .findings import drift_of


def conclusions(run: Run) -> list[Message]:
    """For each other side one sentence and what a reader must know besides; then why the rounds ended, whether the
    answers agree, how accurate they are, and what becomes of the claim that the preset is about."""
    plan = run.measurement
    rounds = rounds_of(run)
    found = run_verdicts(run, rounds)
    sent = [len(trial.requests) for side in run.sides for trial in side.trials if trial.complete]
    # Once the run has ended, drift and failures are findings, with what to do about them.
    ended = run.status != "running"
    overall = _throughput(run) if run.workload.objective in ("tpot", "ttft") else {}
    sentences = []
    for verdict in found:
        sentences.append(headline(verdict, sent, run.asked if isinstance(plan and plan.prompts, str) else None))
        sentences += [Message("measured.overall", overall[verdict.side])] if verdict.side in overall else []
        if verdict.reason is not None and not (ended and drift_of(verdict)):
            sentences.append(verdict.reason)
    sentences += [] if ended else _failures(run)
    if len(set(sent)) > 1 and run.workload.objective in ("tpot", "ttft"):
        sentences.append(Message("measured.unlike_prompts"))
    why = ending(run, rounds, found)
    if why is not None and plan is not None:
        params: dict[str, object] = {
            "rounds": plan.max_rounds,
            "minutes": plan.budget_s / 60,
            "width": 50 * plan.target_width,
        }
        sentences.append(Message(f"measured.ended_{why}", params))
    for agreement in run_agreements(run):
        side, baseline = run.sides[agreement.side].label, run.sides[agreement.baseline].label
        params = {"side": side, "baseline": baseline, "statement": agreement.statement()}
        sentences.append(Message("outputs.of", params))
    told = claim_of(run)
    return sentences + statements(run) + harness_statements(run) + (told.sentences() if told else [])


def _throughput(run: Run) -> dict[str, dict[str, object]]:
    """For each other side, what all output tokens a second came to: the first token's wait counts there, too."""
    baseline, *others = [side.label for side in run.sides]
    values = [each.values for each in rounds_of(run, "throughput")]
    found = {side: compare(values, side, baseline, "throughput") for side in others}
    return {
        side: {
            "side": side,
            "baseline": baseline,
            "speed_up": one.speed_up,
            "low": one.interval[0],
            "high": one.interval[1],
        }
        for side, one in found.items()
        if one.interval is not None
    }


def _failures(run: Run) -> list[Message]:
    """Every side some of whose requests failed, other than by being stopped."""
    found = []
    for side in run.sides:
        requests = [trace for trial in side.trials if trial.complete for trace in trial.requests]
        failed = sum(trace.problem is not None for trace in requests)
        if failed:
            params: dict[str, object] = {"side": side.label, "failed": failed, "requests": len(requests)}
            found.append(Message("measured.failed", params))
    return found
