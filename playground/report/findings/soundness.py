"""Was the measurement itself sound: failed requests, a cold start, drift, a throttled card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from statistics import median

from playground.domain.record.counters import POWER_CAP, SLOWED
from playground.domain.record.engine_path import listed
from playground.domain.record.traces import RequestTrace
from playground.domain.stats.reasons import ReasonKind
from playground.domain.stats.rounds import run_verdicts
from playground.domain.stats.verdicts import LOWER_IS_BETTER, Verdict
from playground.report.answer import unset_path as differing_path

from .side_view import Finding, SideView

# Runs at low concurrency were seen to differ by up to 20% (vLLM issue 53436): more than that is no chance.
COLD = 1.25
# Fewer other rounds do not show what is usual.
LEAST_OTHERS = 3
# Samples are half a second apart: fewer may be the end of what was before.
LEAST_THROTTLED = 2
THROTTLED_SHARE = 0.05
# A card says "power limit" already when the clock is one step (15 MHz) below the highest.
NEARLY_FULL_CLOCK = 0.95
# With fewer tokens a single piece may be all that a stream has to bring, such as a draft that was accepted whole.
LEAST_STREAMED = 16
# The verdict's own tests for drift (Mann-Kendall, domain/stats/reasons.py): a side's rounds, or the ratio itself.
DRIFTS: tuple[ReasonKind, ...] = ("drifts_up", "drifts_down", "ratio_moves")


def failed_requests(side: SideView) -> Finding | None:
    """Failed requests. Any count matters: a trial with one has no figure, and the slow requests may be those that
    failed."""
    problems = [trace.problem for trace in side.requests if trace.problem is not None]
    if not problems:
        return None
    [(most, _)] = Counter(problem.message_id for problem in problems).most_common(1)
    cause = next(problem for problem in problems if problem.message_id == most)
    params = {"failed": len(problems), "requests": len(side.requests), "cause": cause}
    return side.finding("failed_requests", params)


def not_streamed(side: SideView) -> Finding | None:
    """Every answer came in one piece: the endpoint does not stream, or a proxy collects the stream."""
    answers = unstreamed(side.requests) if side.engine is None else 0
    return side.finding("not_streamed", {"answers": answers}) if answers else None


def rate_limited(side: SideView) -> Finding | None:
    """Requests waited for the endpoint's rate limit: the load was not the one that was asked for."""
    times = sum(trial.limited for trial in side.record.trials)
    return side.finding("rate_limited", {"times": times, "requests": len(side.requests)}) if times else None


def unstreamed(traces: Sequence[RequestTrace]) -> int:
    """How many answers there are, if each came in one piece; else 0."""
    answered = [trace for trace in traces if trace.problem is None]
    return len(answered) if all(map(_in_one_piece, answered)) else 0


def _in_one_piece(trace: RequestTrace) -> bool:
    return len(trace.chunks) == 1 and (trace.output_tokens or trace.chunks[0].tokens or 0) >= LEAST_STREAMED


def cold_start(side: SideView) -> Finding | None:
    """The first round is far worse than the usual one. The articles: without a warm-up figures are too low."""
    objective = side.run.workload.objective
    values = [completed.values[side.label] for completed in side.rounds(objective)]
    sign = 1 if objective in LOWER_IS_BETTER else -1
    slowness = [sign * log(value) for value in values if value]
    first, others = slowness[:1], slowness[1:]
    if len(slowness) < len(values) or len(others) < LEAST_OTHERS or first[0] <= max(others):
        return None
    slowdown = exp(first[0] - median(others))
    return side.finding("cold_start", {"times": slowdown, "rounds": len(values)}) if slowdown >= COLD else None


def drift(side: SideView) -> Finding | None:
    """A drift that the verdicts report, once for the side that it is about."""
    for verdict in run_verdicts(side.run, side.rounds(side.run.workload.objective)):
        reason = verdict.reason
        if reason is not None and reason.kind in DRIFTS and reason.params["side"] == side.label:
            return side.finding(reason.kind, reason.params)
    return None


def unset_path(side: SideView) -> Finding | None:
    """vLLM chose another way to work than for the first side, though nobody set it: the comparison contains that,
    too."""
    index = [record.label for record in side.run.sides].index(side.label)
    unset = differing_path(side.run, index) if index else []
    if not unset:
        return None
    params = {"baseline": side.run.sides[0].label, "parts": listed(unset)}
    speculates = side.engine is not None and side.engine.speculates is True
    return side.finding("unset_path", params, remedy="off" if speculates else "do")


def throttled(side: SideView) -> Finding | None:
    """The clock of the side's GPUs was held down while it served: by heat or the power supply, or else by the
    power limit, which is usual under load and no finding while the clock stays near the highest of the run."""
    reported = [counters for counters in side.busy if counters.gpu_throttle is not None]
    highest = max((sample.counters.gpu_clock_mhz or 0 for s in side.run.sides for sample in s.samples), default=0)
    for rule, bits in (("slowed", SLOWED), ("power_cap", POWER_CAP)):
        held = [counters for counters in reported if (counters.gpu_throttle or 0) & bits]
        if len(held) >= max(LEAST_THROTTLED, THROTTLED_SHARE * len(reported)):
            mhz = median(counters.gpu_clock_mhz or 0 for counters in held)
            if rule == "power_cap" and mhz > NEARLY_FULL_CLOCK * highest:
                continue
            hottest = max(counters.gpu_temperature_c or 0 for counters in held)
            return side.finding(rule, {"share": len(held) / len(reported), "mhz": mhz, "celsius": hottest})
    return None


def tells_of_drift(verdict: Verdict) -> bool:
    return verdict.reason is not None and verdict.reason.kind in DRIFTS
