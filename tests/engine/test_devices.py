"""Which side gets which part of the machine."""

from __future__ import annotations

import pytest
from support.nvml import Card, StandIn, with_cards

from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.engine import devices, gpu_load
from playground.engine.devices import Gpu, Machine, Placement, place


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
        (4, [1, 2], [(0,), (1, 2)]),
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


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (Placement("cpu", cores=(0, 1, 2, 5)), "CPU 0-2,5"),
        (Placement("cpu", cores=(3,)), "CPU 3"),
        (Placement("cuda", gpus=(0, 1)), "CUDA 0-1"),
    ],
)
def test_shown_as(placement: Placement, text: str) -> None:
    assert str(placement) == text


def test_this_machine() -> None:
    found = devices.machine()
    assert found.cores
    assert found.memory_bytes > 0
    record = found.as_record()
    assert record["cores"] == len(found.cores)
    assert record["gpus"] == [{"name": gpu.name, "total_bytes": gpu.total_bytes} for gpu in found.gpus]


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


def test_load_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Card(busy=80, used=7, watts=500, mhz=1980, celsius=50, throttle=0x4, processes=(1, 2))
    second = Card(busy=40, used=5, watts=300, mhz=1200, celsius=80, throttle=0x40, processes=(3,))
    # One slice of it is a device of its own: what only whole cards report is unknown.
    slice_ = Card(lacks=("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTotalEnergyConsumption"), used=3)
    with_cards(monkeypatch, StandIn(first, second, slice_))
    load = gpu_load.read((0, 1))
    assert load is not None
    assert load.utilization == pytest.approx(0.6)
    assert (load.memory_bytes, load.power_w, load.clock_mhz, load.temperature_c) == (12, 800, 1200, 80)
    assert (load.throttle, load.processes) == (0x44, 2)
    assert load.energy_j is not None
    partly = gpu_load.read((0, 2))
    assert partly is not None
    assert (partly.utilization, partly.energy_j, partly.memory_bytes) == (None, None, 10)
    assert gpu_load.read(()) is None
    assert gpu_load.read((0, 3)) is None
