"""Which tokens came from accepted drafts, as far as a client can know.

Live, a chunk of n tokens on a speculating side is taken for one verification step: n - 1 accepted drafts and one
token of the target's own. That is an estimate, since the engine merges steps when its reader lags. At the end the
engine's own per-step arrays settle it, where they determine it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from playground.domain.record.traces import RequestTrace, StepArrays

# A server may count any number of tokens in a chunk or step: longer lists of flags are not made.
MOST_TOKENS = 2**20


def estimated_origins(chunk_sizes: Sequence[int]) -> list[bool]:
    """One flag a token, True: accepted draft. The first chunk is the prefill's: never a draft."""
    return [flag for index, size in enumerate(chunk_sizes) for flag in estimated_in_chunk(index, size)]


def estimated_in_chunk(index: int, size: int) -> list[bool]:
    """The flags of one chunk's tokens."""
    drafted = 0 if index == 0 else max(0, size - 1)
    return [True] * drafted + [False] * (size - drafted)


def settled_origins(chunk_sizes: Sequence[int], steps: StepArrays) -> list[bool] | None:
    """One flag a token from the per-step arrays, or None where they leave more than one possibility, or more than
    MOST_TOKENS tokens.

    The verification steps alone may account for every token; or each chunk is one step; else the steps are laid
    over chunks of which some hold several.
    """
    total = sum(chunk_sizes)
    if total == 0:
        return []
    if max(total, sum(steps.accepted)) > MOST_TOKENS:
        return None
    origins = [False]
    ends = {1}
    for count in steps.accepted:
        origins += [True] * count + [False]
        ends.add(len(origins))
    # A step's tokens come in one chunk: a chunk that ends inside a step shows that undrafted steps are missing.
    whole = ends.issuperset(accumulate(chunk_sizes[:-1]))
    # Only an answer's very last step can be cut short, by a stop or by the length limit.
    overshoot = len(origins) - total
    if whole and 0 <= overshoot <= (steps.accepted[-1] if steps.accepted else 0):
        return origins[:total]
    return _one_step_a_chunk(chunk_sizes, steps) or _laid_over_chunks(chunk_sizes, steps)


def _one_step_a_chunk(chunk_sizes: Sequence[int], steps: StepArrays) -> list[bool] | None:
    """The steps that accepted something are exactly the chunks that grew, the last possibly cut short."""
    grown = [count for count in steps.accepted if count > 0]
    last = chunk_sizes[-1]
    if chunk_sizes[0] == 1 and [size - 1 for size in chunk_sizes if size > 1] == grown:
        return estimated_origins(chunk_sizes)
    if len(chunk_sizes) < 2 or not steps.accepted or last > steps.accepted[-1]:
        return None
    if chunk_sizes[0] == 1 and [size - 1 for size in chunk_sizes[:-1] if size > 1] == grown[:-1]:
        return estimated_origins(chunk_sizes[:-1]) + [True] * last
    return None


def _laid_over_chunks(chunk_sizes: Sequence[int], steps: StepArrays) -> list[bool] | None:
    """The one way in which the steps fit the chunks, or None if there is none, or more than one.

    A chunk is one step, or several that the engine merged. Steps that accepted something come in order; every
    other token is the target's own, from a step that drafted nothing or of which nothing was accepted.
    """
    grown = [count for count in steps.accepted if count > 0]
    last_may_be_cut = bool(steps.accepted) and steps.accepted[-1] > 0
    # Steps used up so far -> the one colouring that leads there (None: several).
    ways: dict[int, list[bool] | None] = {0: []}
    for index, size in enumerate(chunk_sizes):
        final = index == len(chunk_sizes) - 1
        reached: dict[int, list[bool] | None] = {}
        for used, before in ways.items():
            for taken, colouring in _fillings(size, index == 0, grown[used:], final and last_may_be_cut):
                known = None if before is None or colouring is None else before + colouring
                reached[used + taken] = None if used + taken in reached else known
        ways = reached
    return ways.get(len(grown))


def _fillings(
    size: int, first_chunk: bool, grown: Sequence[int], may_cut: bool
) -> Iterator[tuple[int, list[bool] | None]]:
    """Ways to fill one chunk: how many of the coming steps it takes, and its colouring (None: several)."""
    prefill = [False] if first_chunk else []
    room = size - len(prefill)
    taken: list[bool] = []
    for count in range(len(grown) + 1):
        spare = room - len(taken)
        if spare < 0:
            break
        # Tokens of other steps could stand before, between or after the taken ones.
        yield count, prefill + taken + [False] * spare if count == 0 or spare == 0 else None
        if count == len(grown):
            break
        if may_cut and count == len(grown) - 1 and 0 < spare <= grown[count]:
            yield count + 1, prefill + taken + [True] * spare if spare == 1 else None
        taken = taken + [True] * grown[count] + [False]


def token_origins(trace: RequestTrace, speculates: bool) -> tuple[list[bool] | None, bool]:
    """Flags a token (True: accepted draft) and whether they are settled; None where tokens aren't counted, or are
    more than MOST_TOKENS."""
    sizes = [chunk.tokens for chunk in trace.chunks]
    known = [size for size in sizes if size is not None]
    if not speculates or len(known) < len(sizes) or sum(known) > MOST_TOKENS:
        return None, False
    if trace.steps is not None:
        settled = settled_origins(known, trace.steps)
        if settled is not None:
            return settled, True
    return estimated_origins(known), False
