"""Does the engine's capacity fit its load: how many requests run at once, and the KV cache."""

from __future__ import annotations

from statistics import median

from playground.domain.record.counters import Counters
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.change import Change

from .side_view import Finding, SideView

# With no more than half of the KV cache in use, twice as many requests fit.
HALF = 0.5
# In fewer samples than these, requests wait for their prompts' turn, not for a place in the batch.
LEAST_SAMPLES = 5
AT_LIMIT_SHARE = 0.2
# The KV cache is allocated in blocks, so a cache without room for another request is rarely at exactly 1.
FULL = 0.95
# The claim `short_requests` mixes answers of 100 and 1000 tokens: four times the usual is more like its long than
# its short ones.
LONG = 4
# Most of the tokens.
MOST = 0.5
# The same claim: the short requests' latency went from 0.2 to 1.5 s. Twice can't be missed, and is beyond the
# 20% of run-to-run spread that was seen at low concurrency (vLLM issue 53436).
STARVED = 2
# With fewer requests than this on either side of a comparison of medians, a single one would decide.
LEAST_REQUESTS = 5
# A quarter of the smallest default of max_num_batched_tokens (2048): a long prompt leaves room in each step.
PREFILL_SHARE = 512


def batch_limit(side: SideView) -> Finding | None:
    """Requests wait for a place in the batch while KV cache is free.

    The articles: max_num_seqs from 16 to 64 more than doubles throughput (claim `batching`); where the batch is
    too small, raise max_num_seqs first.
    """
    if side.engine is None or len(side.busy) < LEAST_SAMPLES or side.profile is None:
        return None
    peak = max(counters.running or 0 for counters in side.busy)
    limit = side.engine.knobs.max_num_seqs or peak
    at_limit = [counters for counters in side.busy if counters.waiting and (counters.running or 0) >= limit]
    usage = max(counters.kv_cache_usage or 0 for counters in side.busy)
    if len(at_limit) < AT_LIMIT_SHARE * len(side.busy) or usage > HALF:
        return None
    waiting = median(counters.waiting or 0 for counters in at_limit)
    higher = Change("knobs.max_num_seqs", min(2 * limit, side.profile.peak))
    params = {"limit": limit, "waiting": waiting, "usage": usage, "higher": higher.value}
    return side.finding("batch_limit", params, higher)


def kv_full(side: SideView) -> Finding | None:
    """Requests were thrown out of the batch, or wait for room.

    vLLM's "Optimization and Tuning" on preemption: more KV cache (gpu_memory_utilization), or fewer at once
    (max_num_seqs). Any preemption counts: what was computed is computed again.
    """
    preempted, full = _preemptions(side), _full(side)
    if side.engine is None or not (preempted or full):
        return None
    usage = max((counters.kv_cache_usage or 0 for counters in side.busy), default=0)
    fit = int(median(counters.running or 0 for counters in full)) if full else 0
    params = {"preempted": preempted, "usage": usage, "fit": fit}
    if 0 < fit < (side.engine.knobs.max_num_seqs or fit + 1):
        return side.finding("kv_full", params, Change("knobs.max_num_seqs", fit))
    return side.finding("kv_full", params, remedy="room")


def long_takes_cache(side: SideView) -> Finding | None:
    """Long sequences take all of the KV cache: a problem that the articles report."""
    tokens = [_tokens(trace) for trace in side.requests]
    if side.engine is None or len(tokens) < LEAST_REQUESTS or not (_preemptions(side) or _full(side)):
        return None
    long = [count for count in tokens if count >= LONG * median(tokens)]
    share = sum(long) / max(1, sum(tokens))
    if share < MOST:
        return None
    params = {"long": len(long), "requests": len(tokens), "share": share, "longest": max(tokens)}
    if side.engine.knobs.enable_prefix_caching is False:
        change = Change("knobs.enable_prefix_caching", value=True)
        return side.finding("long_takes_cache", params, change, remedy="reuse")
    return side.finding("long_takes_cache", params)


def short_starved(side: SideView) -> Finding | None:
    """Short requests wait far longer for their first token while a long one is under way (claim
    `short_requests`)."""
    # Where the load itself grows, later ones wait longer in any case.
    if side.profile is not None and not side.profile.steady:
        return None
    usual = median([_tokens(trace) for trace in side.requests] or [0])
    alone: list[float] = []
    beside: list[float] = []
    longest_prompt = 0
    for trial in side.record.trials:
        long = [trace for trace in trial.requests if trace.chunks and _tokens(trace) >= LONG * usual]
        longest_prompt = max([longest_prompt, *(trace.prompt_tokens or 0 for trace in long)])
        for trace in trial.requests:
            if trace.chunks and _tokens(trace) <= usual:
                (beside if any(_under_way(other, trace.sent_ms) for other in long) else alone).append(
                    trace.chunks[0].ms
                )
    if min(len(alone), len(beside)) < LEAST_REQUESTS or median(beside) < STARVED * median(alone):
        return None
    params = {"beside": median(beside), "alone": median(alone), "times": median(beside) / median(alone)}
    if longest_prompt <= PREFILL_SHARE:
        return side.finding("short_starved", params, remedy="apart")
    change = Change("knobs.long_prefill_token_threshold", PREFILL_SHARE)
    return side.finding("short_starved", {**params, "prompt": longest_prompt, "most": PREFILL_SHARE}, change)


def _under_way(trace: RequestTrace, ms: float) -> bool:
    return trace.sent_ms <= ms < trace.sent_ms + trace.chunks[-1].ms


def _tokens(trace: RequestTrace) -> int:
    """The tokens that a request holds in the KV cache at its end."""
    return (trace.prompt_tokens or 0) + (trace.counted_tokens or 0)


def _full(side: SideView) -> list[Counters]:
    """Samples in which requests wait and the KV cache has no room."""
    return [counters for counters in side.busy if counters.waiting and (counters.kv_cache_usage or 0) >= FULL]


def _preemptions(side: SideView) -> int:
    """Preemptions over all trials; 0 where the counters are unknown."""
    pairs = [(trial.before, trial.after) for trial in side.record.trials]
    return sum((after.preemptions or 0) - (before.preemptions or 0) for before, after in pairs if before and after)
