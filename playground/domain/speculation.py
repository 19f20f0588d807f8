"""Which tokens came from accepted drafts, as far as a client can know.

Live, a chunk of n tokens on a speculating side is taken for one verification step: n - 1 accepted drafts and one
token of the target's own. That is an estimate, since the engine merges steps when its reader lags. At the end the
engine's own per-step arrays settle it, where they determine it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .records import RequestTrace, StepArrays


def estimated_origins(chunk_sizes: Sequence[int]) -> list[bool]:
    """One flag a token, True: accepted draft. The first chunk is the prefill's: never a draft."""
    origins: list[bool] = []
    for index, size in enumerate(chunk_sizes):
        drafted = 0 if index == 0 else size - 1
        origins += [True] * drafted + [False] * (size - drafted)
    return origins


def settled_origins(chunk_sizes: Sequence[int], steps: StepArrays) -> list[bool] | None:
    """One flag a token from the per-step arrays, or None where they leave more than one possibility.

    Two cases determine it: every chunk is one step (the accepted counts are exactly the chunks' sizes less one,
    the last possibly cut short by a stop), or the verification steps alone account for every token.
    """
    total = sum(chunk_sizes)
    if total == 0:
        return []
    accepted = [count for count in steps.accepted if count > 0]
    grown = [size - 1 for size in chunk_sizes[1:] if size > 1]
    if chunk_sizes[0] == 1 and len(grown) == len(accepted) and grown[:-1] == accepted[:-1]:
        # Only an answer's very last step can be cut short by a stop.
        cut = bool(grown) and chunk_sizes[-1] > 1 and grown[-1] <= accepted[-1]
        if grown == accepted or cut:
            return estimated_origins(chunk_sizes)
    origins = [False]
    for count in steps.accepted:
        origins += [True] * count + [False]
    overshoot = len(origins) - total
    last_step = steps.accepted[-1] + 1 if steps.accepted else 0
    if 0 <= overshoot < max(last_step, 1):
        return origins[:total]
    return None


def token_origins(trace: RequestTrace, speculates: bool) -> tuple[list[bool] | None, bool]:
    """Flags a token (True: accepted draft) and whether they are settled; None where tokens aren't counted."""
    sizes = [chunk.tokens for chunk in trace.chunks]
    known = [size for size in sizes if size is not None]
    if not speculates or len(known) < len(sizes):
        return None, False
    if trace.steps is not None:
        settled = settled_origins(known, trace.steps)
        if settled is not None:
            return settled, True
    return estimated_origins(known), False
