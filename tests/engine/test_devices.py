"""What the system and NVML say of this machine."""

from __future__ import annotations

import subprocess

import pytest
from support.nvml import GIB, Card, StandIn, with_cards

from playground.engine import devices, gpu_load
from playground.engine.devices import FAR, Placement


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
    assert (load.throttle, load.processes) == (0x44, ({1, 2}, {3}))
    assert load.energy_j is not None
    partly = gpu_load.read((0, 2))
    assert partly is not None
    assert (partly.utilization, partly.energy_j, partly.memory_bytes) == (None, None, 10)
    assert gpu_load.read(()) is None
    assert gpu_load.read((0, 3)) is None


def test_cards_tell_what_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of the processor, of which the second begins beyond the first 64 cores."""
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    lost = ("nvmlDeviceGetCpuAffinity", "nvmlDeviceGetP2PStatus", "nvmlDeviceGetTopologyCommonAncestor")
    cards = (
        Card(cores=range(64)),
        Card(cores=range(64)),
        Card(cores=range(64, 128), node=1, used=100 * GIB, processes=(1,)),
        Card(node=1, mig=True, lacks=lost),
    )
    with_cards(monkeypatch, StandIn(*cards, nvlinks=[(0, 1)]))
    first, second, third, fourth = devices.machine().gpus
    assert first.cores == tuple(range(64))
    assert third.cores == tuple(range(64, 128))
    assert fourth.cores == ()
    assert first.distances == ((1, 0), (2, 50), (3, FAR))
    assert third.distances == ((0, 50), (1, 50), (3, FAR))
    assert [gpu.busy for gpu in (first, second, third, fourth)] == [False, False, True, False]
    assert [gpu.mig for gpu in (first, second, third, fourth)] == [False, False, False, True]


def test_a_card_of_our_own_engines_is_not_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next run would take other cards, and start its engines again."""
    with subprocess.Popen(["sleep", "60"]) as engine:
        with_cards(monkeypatch, StandIn(Card(used=100 * GIB, processes=(engine.pid, 1))))
        assert not devices.machine().gpus[0].busy
        engine.kill()
