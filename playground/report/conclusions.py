"""The conclusions of a measured run, as sentences. The page, the command line and the exported page show the
same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from playground.domain.answers.accuracy import statements
from playground.domain.answers.agreement import run_agreements
from playground.domain.answers.harness import harness_statements
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.stats.expenses import ExpenseRatio, expense_ratios
from playground.domain.stats.rounds import Round, ending, rounds_of, run_verdicts
from playground.domain.stats.verdicts import Verdict, compare, headline

from .claims import claim_of
from .findings import tells_of_drift

Kind = Literal["headline", "note", "failures", "ending", "answers", "accuracy", "claim", "prompts"]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One sentence and its topic. `headline`: the verdict on a side; `note`: a caveat."""

    kind: Kind
    sentence: Message


def conclusions(run: Run) -> list[Conclusion]:
    """For each other side one sentence and its caveats; then why the rounds ended, whether the answers agree, how
    accurate they are, what of a prompts file was not sent, and whether the preset's claim holds."""
    if run.mode == "imported":
        return []
    rounds = rounds_of(run)
    verdicts = run_verdicts(run, rounds)
    # Once the run has ended, drift and failures are findings, which also say what to do.
    ended = run.status != "running"
    sent = [trial.sent for side in run.sides for trial in side.trials if trial.complete]
    concluded = list(_verdicts(run, verdicts, sent, ended=ended))
    if not ended:
        concluded += [Conclusion("failures", sentence) for sentence in _failures(run)]
    if len(set(sent)) > 1 and run.workload.objective in ("tpot", "ttft"):
        concluded.append(Conclusion("note", Message("measured.unlike_prompts")))
    concluded += [Conclusion("ending", sentence) for sentence in _ending(run, rounds, verdicts)]
    concluded += [Conclusion("answers", sentence) for sentence in _agreements(run)]
    concluded += [Conclusion("accuracy", sentence) for sentence in (*statements(run), *harness_statements(run))]
    if run.prompts is not None:
        concluded += [Conclusion("prompts", sentence) for sentence in run.prompts.remarks]
    claimed = claim_of(run)
    return concluded + [Conclusion("claim", sentence) for sentence in (claimed.sentences() if claimed else ())]


def _verdicts(run: Run, verdicts: Sequence[Verdict], sent: Sequence[int], *, ended: bool) -> Iterator[Conclusion]:
    plan = run.measurement
    source = run.title if plan is not None and isinstance(plan.prompts, str) else None
    expenses = expense_ratios(run)
    overall = _throughput(run) if run.workload.objective in ("tpot", "ttft") else {}
    for verdict in verdicts:
        yield Conclusion("headline", headline(verdict, sent, source))
        if verdict.side in overall:
            yield Conclusion("note", Message("measured.overall", overall[verdict.side]))
        for expense in expenses:
            if expense.side == verdict.side:
                yield Conclusion("note", _expense(expense))
        if verdict.reason is not None and not (ended and tells_of_drift(verdict)):
            yield Conclusion("note", verdict.reason.message)


def _expense(expense: ExpenseRatio) -> Message:
    low, high = expense.ratio.interval
    params = {"side": expense.side, "baseline": expense.baseline, "ratio": expense.ratio.value}
    return Message(f"expense.{expense.figure}", {**params, "low": low, "high": high})


def _ending(run: Run, rounds: list[Round], verdicts: tuple[Verdict, ...]) -> Iterator[Message]:
    why, plan = ending(run, rounds, verdicts), run.measurement
    if why is not None and plan is not None:
        params: dict[str, object] = {
            "rounds": plan.max_rounds,
            "minutes": plan.budget_s / 60,
            "width": 50 * plan.target_width,
        }
        yield Message(f"measured.ended_{why}", params)


def _agreements(run: Run) -> Iterator[Message]:
    labels = [side.label for side in run.sides]
    for agreement in run_agreements(run):
        side, baseline = labels[agreement.side], labels[agreement.baseline]
        params = {"side": side, "baseline": baseline, "statement": agreement.statement()}
        yield Message("outputs.of", params)


def _throughput(run: Run) -> dict[str, dict[str, object]]:
    """The ratio of output tokens per second for each other side; this includes the wait for the first token."""
    baseline, *others = [side.label for side in run.sides]
    values = [item.values for item in rounds_of(run, "throughput")]
    verdicts = [compare(values, side, baseline, "throughput") for side in others]
    return {
        verdict.side: {
            "side": verdict.side,
            "baseline": baseline,
            "speed_up": verdict.speed_up,
            "low": verdict.interval[0],
            "high": verdict.interval[1],
        }
        for verdict in verdicts
        if verdict.interval is not None
    }


def _failures(run: Run) -> Iterator[Message]:
    """A sentence for every side with failed requests, other than stopped ones."""
    for side in run.sides:
        requests = [trace for trial in side.trials if trial.complete for trace in trial.requests]
        failed = sum(trace.problem is not None for trace in requests)
        if failed:
            yield Message("measured.failed", {"side": side.label, "failed": failed, "requests": len(requests)})
