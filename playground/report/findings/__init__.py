"""Rules: from a run to what stands out in it, what that means and what to do. Nothing here is stored.

A rule looks at one side. Its thresholds stand beside it with their sources: "the articles" are those of
practitioners on speculative decoding and batching whose claims the playground checks (docs/claims.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from playground.domain.record.run import Run
from playground.domain.stats.rounds import rounds_of

from . import capacity, soundness, speculation
from .side_view import Finding, SideView
from .soundness import tells_of_drift, unstreamed
from .speculation import sweep_findings

__all__ = ["Finding", "findings", "sweep_findings", "tells_of_drift", "unstreamed"]

Rule = Callable[[SideView], Finding | None]

# Rules on counters, which a neighbour on the same device doesn't falsify: a contended race supports them.
RULES: tuple[Rule, ...] = (
    soundness.unset_path,
    capacity.kv_full,
    soundness.not_streamed,
    soundness.rate_limited,
    speculation.nothing_accepted,
    speculation.low_acceptance,
    speculation.low_coverage,
)
# Rules on times, or on many requests. Those that make the figures doubtful come first.
MEASURED_RULES: tuple[Rule, ...] = (
    soundness.failed_requests,
    soundness.cold_start,
    soundness.drift,
    soundness.throttled,
    capacity.batch_limit,
    capacity.long_takes_cache,
    capacity.short_starved,
    speculation.below_break_even,
    speculation.draft_too_slow,
    speculation.ttft_worse,
)


def findings(run: Run) -> list[Finding]:
    """The findings of a run that has ended. A race gets only those that a contended race can support."""
    rules = RULES if run.measurement is None else (*MEASURED_RULES, *RULES)
    rounds = cache(partial(rounds_of, run))
    sides = [SideView(run, side, rounds) for side in run.sides]
    return [finding for rule in rules for side in sides if (finding := rule(side)) is not None]
