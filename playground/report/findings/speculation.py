"""Does speculation pay, and if not, why not."""

from __future__ import annotations

from collections.abc import Sequence

from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.speculation.theory import SpeculationPoint, measured_point, step_cost
from playground.domain.stats.verdicts import Verdict

from .side_view import SPECULATION_OFF, Finding, SideView

# A rate over so many drafts has a standard error of at most 0.5 / sqrt(25) = 10 percentage points.
LEAST_DRAFTS = 25
# The articles: acceptance at or above 0.6 is good; below 0.5 the draft does not pay.
GOOD_ACCEPTANCE = 0.6
POOR_ACCEPTANCE = 0.5
# vLLM compares vocabularies by size alone (vLLM issue 7252): drafts in another tokenizer's ids fit only by chance.
CHANCE = 0.05
# The articles: a draft gains 20 to 40% (claim `table`). With fewer tokens per step, not even a free draft does so.
LEAST_TOKENS_PER_STEP = 1.2
# Fewer than every other step has a draft: then more drafts are needed, rather than better ones.
LOW_COVERAGE = 0.5
# With drafts in fewer steps than that, what a step costs says nothing of what a draft costs.
LEAST_COVERAGE = 0.05
# What n-gram needs at least to match: vLLM's own default is 5; a match of 2 is the shortest that is no accident.
SHORT_MATCH = 2


def below_break_even(side: SideView) -> Finding | None:
    """Speculation clearly loses: the acceptance is below what the measured cost of this side's steps requires.

    A position pays while its acceptance is above the cost of a drafted token (Leviathan et al. 2023, arXiv
    2211.17192, section 3.4), so the remedy is to draft only that many tokens.
    """
    acceptance, verdict, cost = side.acceptance, side.against_plain("tpot"), token_cost(side)
    if acceptance is None or verdict is None or cost is None or verdict.verdict != "slower":
        return None
    paying = sum(rate > cost for rate in acceptance.per_position)
    params = {**_speed_up(verdict), "rate": acceptance.rate, "needed": cost, "paying": paying}
    if paying:
        fewer = Change("speculation.num_speculative_tokens", paying)
        return side.finding("below_break_even", params, fewer, remedy="fewer")
    return side.finding("below_break_even", params, SPECULATION_OFF)


def draft_too_slow(side: SideView) -> Finding | None:
    """A drafted token costs such a share of a step that even a good acceptance would not pay for it."""
    if side.engine is None or side.engine.speculation.method != "draft_model":
        return None
    verdict, cost = side.against_plain("tpot"), token_cost(side)
    if verdict is None or cost is None or verdict.verdict == "faster" or cost <= GOOD_ACCEPTANCE:
        return None
    return side.finding("draft_too_slow", {"cost": cost, "good": GOOD_ACCEPTANCE, "draft": side.engine.draft})


def token_cost(side: SideView) -> float | None:
    """The cost of a drafted token, its verification included, in steps without drafts: (r - 1) / k.

    r follows from what was measured (domain/speculation). This cost is the acceptance at which speculation breaks
    even.
    """
    verdict, acceptance = side.against_plain("tpot"), side.acceptance
    if verdict is None or acceptance is None or not acceptance.draft_tokens or side.profile is None:
        return None
    if (side.figures.draft_coverage or 0) < LEAST_COVERAGE:
        return None
    # A draft may be shorter than configured.
    length = acceptance.draft_tokens / acceptance.drafts
    point = measured_point(round(length), side.profile.peak, verdict, side.figures)
    return (step_cost(point) - 1) / length if point is not None else None


def ttft_worse(side: SideView) -> Finding | None:
    """Drafting delays the first token (claim `under_load`). The whole interval must be below 1."""
    verdict = side.against_plain("ttft")
    if verdict is None or verdict.verdict != "slower":
        return None
    decode = side.against_plain("tpot")
    pays = decode is not None and decode.verdict == "faster"
    return side.finding("ttft_worse", _speed_up(verdict), None if pays else SPECULATION_OFF)


def nothing_accepted(side: SideView) -> Finding | None:
    """A draft model whose accepted tokens are so few that they fit only by chance."""
    drafted = _drafted(side)
    if drafted is None or drafted["rate"] >= CHANCE:
        return None
    return side.finding("nothing_accepted", drafted, SPECULATION_OFF)


def low_acceptance(side: SideView) -> Finding | None:
    """An acceptance below what practitioners found to pay, while no comparison shows whether speculation pays.

    Only for drafts that cost a model's step: n-gram's are nearly free, and pay at a lower acceptance.
    """
    drafted, verdict = _drafted(side), side.against_plain("tpot")
    decided = verdict is not None and verdict.verdict != "no clear difference"
    if drafted is None or decided or not CHANCE <= drafted["rate"] < POOR_ACCEPTANCE:
        return None
    return side.finding("low_acceptance", {**drafted, "poor": POOR_ACCEPTANCE})


def low_coverage(side: SideView) -> Finding | None:
    """Drafts are too rare to gain much, however good they are."""
    coverage, per_step = side.figures.draft_coverage, side.figures.tokens_per_step
    if side.engine is None or not side.engine.speculates or coverage is None or per_step is None:
        return None
    if coverage >= LOW_COVERAGE or per_step >= LEAST_TOKENS_PER_STEP:
        return None
    if getattr(side.engine.speculation, "num_speculative_tokens_per_batch_size", None):
        # A schedule that drafts nothing at this load does what it was told.
        return None
    shortest = getattr(side.engine.speculation, "prompt_lookup_min", None)
    params = {"coverage": coverage, "per_step": per_step, "gain": per_step - 1}
    if shortest is not None and shortest > SHORT_MATCH:
        shorter = Change("speculation.prompt_lookup_min", SHORT_MATCH)
        return side.finding("low_coverage", {**params, "shortest": shortest}, shorter, remedy="shorter")
    return side.finding("low_coverage", params)


def sweep_findings(side: str, points: Sequence[SpeculationPoint]) -> list[Finding]:
    """k past its best, from one side at several k and all else equal.

    The articles: the gain flattens with k, 3 to 8 are useful (claim `useful_k`). The longest k is past its best
    where its whole interval lies below the best one's.
    """
    known = [(point.interval, point) for point in points if point.interval is not None]
    if not known:
        return []
    best_interval, best = max(known, key=lambda candidate: candidate[1].speed_up)
    interval, longest = max(known, key=lambda candidate: candidate[1].k)
    if longest.k == best.k or interval[1] >= best_interval[0]:
        return []
    params = {
        "side": side,
        "k": longest.k,
        "best": best.k,
        "speed_up": longest.speed_up,
        "best_speed_up": best.speed_up,
    }
    seen, means, do = (Message(f"finding.past_best_k_{part}", params) for part in ("seen", "means", "do"))
    change = Change("speculation.num_speculative_tokens", best.k)
    return [Finding("past_best_k", side, seen, means, do, change)]


def _drafted(side: SideView) -> dict[str, float] | None:
    """How much of a second model's drafts was accepted, if there were enough to tell. A synthetic acceptance says
    nothing about the draft."""
    acceptance = side.acceptance
    if side.engine is None or side.engine.draft is None or acceptance is None or acceptance.drafts < LEAST_DRAFTS:
        return None
    if side.engine.synthetic or not acceptance.draft_tokens:
        return None
    accepted, drafted = acceptance.accepted_tokens, acceptance.draft_tokens
    return {"rate": accepted / drafted, "accepted": accepted, "drafted": drafted}


def _speed_up(verdict: Verdict) -> dict[str, object]:
    assert verdict.interval is not None
    low, high = verdict.interval
    return {"baseline": verdict.baseline, "speed_up": verdict.speed_up, "low": low, "high": high}
