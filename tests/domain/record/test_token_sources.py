"""Which tokens were accepted drafts. `D` stands for an accepted draft, `.` for a token of the target's own."""

from __future__ import annotations

import itertools

import pytest

from playground.domain.record.token_sources import estimated_origins, settled_origins, token_origins
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.workload import ChatMessage


def drawn(origins: list[bool] | None) -> str | None:
    return None if origins is None else "".join("D" if origin else "." for origin in origins)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([], ""), ([1], "."), ([1, 1, 1], "..."), ([1, 3, 1, 2], ".DD..D."), ([2, 2], "..D.")],
)
def test_estimate_takes_a_chunk_for_a_step(sizes: list[int], expected: str) -> None:
    assert drawn(estimated_origins(sizes)) == expected


@pytest.mark.parametrize(
    ("sizes", "accepted", "expected"),
    [
        # A draft model drafts in every step: the steps alone account for every token, however chunks were merged.
        ([1, 4, 2], [3, 1], ".DDD.D."),
        ([1, 6], [3, 1], ".DDD.D."),
        ([5, 2], [3, 1], ".DDD.D."),
        ([1, 1, 4, 1], [0, 3, 0], "..DDD.."),
        # Cut by a stop or by the length limit: the last step counts accepted tokens that never arrived.
        ([1, 4, 2], [3, 2], ".DDD.DD"),
        ([1, 4, 2], [3, 3], ".DDD.DD"),
        ([1, 2], [5], ".DD"),
        # Undrafted steps are absent from the record (ngram): it is laid over the chunks.
        ([1, 1, 4, 1, 1], [3], "..DDD..."),
        ([1, 1, 3, 1, 2, 1], [2, 0, 1], "..DD..D.."),
        ([1, 1, 1], [], "..."),
        # Of two chunks of the same size each took one of the two steps.
        ([1, 2, 1, 2], [1, 1], ".D..D."),
        ([1], [], "."),
        ([], [], ""),
    ],
)
def test_settled(sizes: list[int], accepted: list[int], expected: str) -> None:
    assert drawn(settled_origins(sizes, StepArrays(tuple(accepted), (5,) * len(accepted)))) == expected


@pytest.mark.parametrize(
    ("sizes", "accepted"),
    [
        # Four tokens in one chunk: the step's own three may begin at the first or at the second.
        ([1, 4, 1], [2]),
        # Either of the two chunks of size two may be two merged plain steps.
        ([1, 2, 2], [1]),
        # The record tells of more than ever arrived.
        ([1, 1, 1, 1, 1], [3, 3]),
    ],
)
def test_not_determined(sizes: list[int], accepted: list[int]) -> None:
    assert settled_origins(sizes, StepArrays(tuple(accepted), (5,) * len(accepted))) is None


def _answers(accepted: tuple[int, ...], plain: int) -> set[tuple[str, ...]]:
    """Every answer, a chunk a step, that these verification steps and so many undrafted ones can have made."""
    found = set[tuple[str, ...]]()
    for order in set(itertools.permutations("s" * len(accepted) + "p" * plain)):
        counts = iter(accepted)
        steps = [("D" * next(counts) if kind == "s" else "") + "." for kind in order]
        found.add((".", *steps))
        # A stop, or the length limit, cuts only the last step.
        found |= {(".", *steps[:-1], steps[-1][:kept]) for kept in range(1, len(steps[-1]))}
    return found


@pytest.mark.parametrize("accepted", [(1,), (2,), (3,), (0, 2), (1, 1), (2, 0), (1, 2)])
@pytest.mark.parametrize("plain", [0, 1, 2])
def test_settled_is_never_wrong(accepted: tuple[int, ...], plain: int) -> None:
    """Steps in every order, with and without a cut: what is called settled is what happened."""
    for steps in sorted(_answers(accepted, plain)):
        found = settled_origins([len(step) for step in steps], StepArrays(accepted, (3,) * len(accepted)))
        assert drawn(found) in ("".join(steps), None), steps
        # A draft model drafts in every step: nothing is left open then.
        assert found is not None or plain > 0, steps


def trace(*sizes: int | None, steps: StepArrays | None = None) -> RequestTrace:
    chunks = [Chunk(float(number), size, "x") for number, size in enumerate(sizes)]
    return RequestTrace((ChatMessage(role="user", content="x"),), chunks=chunks, steps=steps)


@pytest.mark.parametrize(
    ("made", "speculates", "expected"),
    [
        # Never on a side without speculation, whatever its chunks look like.
        (trace(1, 3), False, (None, False)),
        (trace(1, None), True, (None, False)),
        (trace(1, 3), True, (".DD.", False)),
        (trace(1, 3, steps=StepArrays((2,), (2,))), True, (".DD.", True)),
        (trace(1, 3, 1, steps=StepArrays((), ())), True, (".....", True)),
        # Not determined: the estimate stays, and says so.
        (trace(1, 4, 1, steps=StepArrays((2,), (5,))), True, (".DDD..", False)),
    ],
    ids=["off", "not counted", "live", "settled", "settled: nothing drafted", "not determined"],
)
def test_token_origins(made: RequestTrace, speculates: bool, expected: tuple[str | None, bool]) -> None:
    origins, settled = token_origins(made, speculates)
    assert (drawn(origins), settled) == expected
