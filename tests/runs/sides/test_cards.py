"""Which side gets which part of the machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from support.nvml import GIB, Card, StandIn, with_cards

from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.engine import devices
from playground.engine.devices import Gpu, Machine
from playground.runs.sides.cards import place

Pairs = Collection[tuple[int, int]] | None


def host(cores: int = 2, gpus: int = 0) -> Machine:
    cards = tuple(Gpu(index, "H200", 140, 139) for index in range(gpus))
    return Machine("cpu", tuple(range(cores)), False, 64, cards)


def side(gpus: int = 1) -> EngineSettings:
    return EngineSettings(target="t", knobs=Knobs(tensor_parallel_size=gpus))


@pytest.mark.parametrize(
    ("cores", "sides", "expected"),
    [
        (2, 2, [(0,), (1,)]),
        (8, 2, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        # A core too many is nobody's: the sides stay equal.
        (5, 2, [(0, 1), (2, 3)]),
        (4, 4, [(0,), (1,), (2,), (3,)]),
        (1, 2, [(0,), (0,)]),
    ],
)
def test_cores(cores: int, sides: int, expected: list[tuple[int, ...]]) -> None:
    placed = place([side()] * sides, ["cpu"] * sides, host(cores))
    assert [placement.cores for placement in placed] == expected
    # Disjoint cores were seen to contend all the same.
    assert all(placement.contended for placement in placed)


@pytest.mark.parametrize(
    ("gpus", "wanted", "expected"),
    [
        (2, [1, 1], [(0,), (1,)]),
        (4, [1, 2], [(2,), (0, 1)]),
        (4, [2, 1, 1], [(0, 1), (2,), (3,)]),
    ],
)
def test_gpus_of_their_own(gpus: int, wanted: list[int], expected: list[tuple[int, ...]]) -> None:
    placed = place([side(count) for count in wanted], ["cuda"] * len(wanted), host(gpus=gpus))
    assert [placement.gpus for placement in placed] == expected
    assert not any(placement.contended for placement in placed)
    assert {placement.sharing for placement in placed} == {1}


@pytest.mark.parametrize(("gpus", "wanted", "expected"), [(1, [1, 1], [(0,), (0,)]), (2, [2, 1], [(0, 1), (0,)])])
def test_gpus_shared(gpus: int, wanted: list[int], expected: list[tuple[int, ...]]) -> None:
    placed = place([side(count) for count in wanted], ["cuda"] * len(wanted), host(gpus=gpus))
    assert [placement.gpus for placement in placed] == expected
    assert all(placement.contended for placement in placed)
    assert {placement.sharing for placement in placed} == {len(wanted)}


def test_more_gpus_than_there_are() -> None:
    with pytest.raises(InvalidInput) as caught:
        place([side(), side(4)], ["cuda", "cuda"], host(gpus=2))
    assert caught.value.params == {"wanted": 4, "available": 2}


def test_more_processes_than_cores() -> None:
    with pytest.raises(InvalidInput, match="too_many_processes"):
        place([side(3)], ["cpu"], host(cores=2))
    assert place([side(2)], ["cpu"], host(cores=2))[0].cores == (0, 1)


def test_cpu_beside_gpu() -> None:
    """Two runtimes, two devices, and the order of the sides is kept."""
    placed = place([side(), side(), side()], ["cuda", "cpu", "cuda"], host(cores=4, gpus=2))
    assert [placement.device for placement in placed] == ["cuda", "cpu", "cuda"]
    assert [placement.gpus for placement in placed] == [(0,), (), (1,)]
    assert placed[1].cores == (0, 1, 2, 3)


@pytest.mark.parametrize(("cores", "expected"), [(1, (0,)), (2, (1,)), (8, tuple(range(1, 8)))])
def test_sides_in_turns_get_the_same_cores(cores: int, expected: tuple[int, ...]) -> None:
    """All but the first: that one is the page's and the measuring process's."""
    placed = place([side()] * 2, ["cpu"] * 2, host(cores), in_turns=True)
    assert [placement.cores for placement in placed] == [expected] * 2
    assert not any(placement.contended for placement in placed)


def test_sides_in_turns_share_a_gpu_without_contending() -> None:
    placed = place([side()] * 2, ["cuda"] * 2, host(gpus=1), in_turns=True)
    assert [(placement.gpus, placement.sharing, placement.contended) for placement in placed] == [
        ((0,), 2, False)
    ] * 2


def nodes(count: int, **more: Any) -> list[Card]:
    """So many cards, the first half at the first node of the processor, the others at the second."""
    return [Card(node=2 * index // count, **more) for index in range(count)]


def with_card(index: int, cards: list[Card], **more: Any) -> list[Card]:
    for name, value in more.items():
        setattr(cards[index], name, value)
    return cards


TP2, TP4 = Knobs(tensor_parallel_size=2), Knobs(tensor_parallel_size=4)
PP_DP = Knobs(pipeline_parallel_size=2, data_parallel_size=2)
BUSY = {"used": 100 * GIB, "processes": (1,)}
RING = [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize(
    ("cards", "nvlinks", "sides", "expected"),
    [
        (nodes(1), [], [Knobs()] * 2, [(0,), (0,)]),
        (nodes(2), [], [Knobs()] * 2, [(0,), (1,)]),
        (nodes(2), [], [TP2, Knobs()], [(0, 1), (0,)]),
        # NVLink first, then the same node of the processor.
        (nodes(4), [(0, 2), (1, 3)], [TP2, TP2], [(0, 2), (1, 3)]),
        (nodes(4), [], [TP2, TP2], [(0, 1), (2, 3)]),
        (nodes(4), [(0, 2), (1, 3)], [Knobs(), TP2], [(1,), (0, 2)]),
        (nodes(4), [(1, 2)], [Knobs(), TP2, Knobs()], [(0,), (1, 2), (3,)]),
        (nodes(8), None, [TP4, PP_DP], [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (nodes(8), RING, [Knobs(), TP2, TP4], [(6,), (4, 5), (0, 1, 2, 3)]),
        (nodes(8), [(2, 3), (3, 6)], [TP2, TP2], [(2, 3), (0, 1)]),
        # Others use a card: the sides rather share the free one.
        (with_card(0, nodes(2), **BUSY), [], [Knobs()] * 2, [(1,), (1,)]),
        (with_card(1, nodes(4), **BUSY), [(0, 1)], [TP2, Knobs()], [(2, 3), (0,)]),
        (with_card(0, nodes(1), **BUSY), [], [Knobs()] * 2, [(0,), (0,)]),
        # A card in slices comes last.
        (with_card(0, nodes(2), mig=True), [], [Knobs()] * 2, [(1,), (1,)]),
        (with_card(0, nodes(2), mig=True), [], [TP2], [(0, 1)]),
        # What a side names, it gets, and the other stays away from it.
        (nodes(2), [], [Knobs(cuda_visible_devices="1"), Knobs()], [(1,), (0,)]),
        (nodes(2), [], [Knobs(), Knobs(cuda_visible_devices="0")], [(1,), (0,)]),
        (nodes(2), [], [Knobs(cuda_visible_devices="0")] * 2, [(0,), (0,)]),
        (nodes(4), RING[:2], [Knobs(tensor_parallel_size=2, cuda_visible_devices="3,0"), TP2], [(3, 0), (1, 2)]),
    ],
)
def test_cards_are_chosen(
    cards: list[Card],
    nvlinks: Pairs,
    sides: list[Knobs],
    expected: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_cards(monkeypatch, StandIn(*cards, nvlinks=nvlinks))
    settings = [EngineSettings(target="t", knobs=knobs) for knobs in sides]
    placed = place(settings, ["cuda"] * len(sides), devices.machine())
    assert [placement.gpus for placement in placed] == expected
    apart = len({index for gpus in expected for index in gpus}) == sum(map(len, expected))
    assert all(placement.contended != apart for placement in placed)


@pytest.mark.parametrize("cards", ["1", "0,1,2", "0,0", "0,7", "0,1,1"])
def test_cards_that_do_not_fit(cards: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_cards(monkeypatch, StandIn(*nodes(4)))
    side = EngineSettings(target="t", knobs=Knobs(tensor_parallel_size=2, cuda_visible_devices=cards))
    with pytest.raises(InvalidInput) as caught:
        place([side], ["cuda"], devices.machine())
    assert caught.value.message_id == "settings.other_cards"
    assert caught.value.params["known"] == "0, 1, 2, 3"


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        ([range(4), range(4, 8)], [(0, 1, 2, 3), (4, 5, 6, 7)]),
        # All of them, or unknown: any.
        ([range(8), range(8)], [(), ()]),
        ([(), range(4)], [(), (0, 1, 2, 3)]),
        # Near cores that this process may not use.
        ([range(4), range(4, 16)], [(0, 1, 2, 3), (4, 5, 6, 7)]),
    ],
)
def test_near_cores(near: list[Collection[int]], expected: list[tuple[int, ...]]) -> None:
    gpus = tuple(Gpu(index, "H200", 140, 139, cores=tuple(cores)) for index, cores in enumerate(near))
    placed = place([side()] * 2, ["cuda"] * 2, Machine("cpu", tuple(range(8)), False, 64, gpus))
    assert [placement.cores for placement in placed] == expected
