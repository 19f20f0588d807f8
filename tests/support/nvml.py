"""A stand-in for NVIDIA's management library: machines with any number of cards, as a process sees them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import pynvml
import pytest

GIB = 2**30
# A card reports most of its figures by one function.
FIGURES: dict[str, Callable[[Card], object]] = {
    "nvmlDeviceGetName": lambda card: card.name,
    "nvmlDeviceGetMemoryInfo": lambda card: SimpleNamespace(
        total=card.total, used=card.used, free=card.total - card.used
    ),
    "nvmlDeviceGetCudaComputeCapability": lambda card: (9, 0),
    "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=card.busy),
    "nvmlDeviceGetPowerUsage": lambda card: int(card.watts * 1000),
    "nvmlDeviceGetTotalEnergyConsumption": lambda card: int(card.watts * 1000 * time.monotonic()),
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda card: card.throttle,
    "nvmlDeviceGetComputeRunningProcesses": lambda card: [SimpleNamespace(pid=pid) for pid in card.processes],
    "nvmlDeviceGetMigMode": lambda card: [int(card.mig)] * 2,
}


@dataclass(eq=False)
class Card:
    """One card. `cores`: those near it; `lacks`: the functions that it does not support."""

    name: str = "H200"
    total: int = 141 * GIB
    used: int = 0
    cores: Sequence[int] = ()
    node: int = 0
    watts: float = 500.0
    busy: int = 90
    mhz: int = 1500
    celsius: int = 60
    throttle: int = 0
    processes: tuple[int, ...] = ()
    mig: bool = False
    lacks: Collection[str] = ()


class StandIn(ModuleType):
    """The library. `nvlinks`: pairs of cards that it joins, by index; None: all."""

    NVMLError = pynvml.NVMLError

    def __init__(self, *cards: Card, nvlinks: Collection[tuple[int, int]] | None = ()) -> None:
        super().__init__("pynvml")
        self.cards = cards
        self._nvlinks = nvlinks

    def __getattr__(self, name: str) -> object:
        """Constants, and the functions of FIGURES."""
        if name not in FIGURES:
            return getattr(pynvml, name)

        def figure(card: Card) -> object:
            self._check(name, card)
            return FIGURES[name](card)

        return figure

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        if index >= len(self.cards):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self.cards[index]

    def nvmlDeviceGetClockInfo(self, card: Card, _clock: int) -> int:
        self._check("nvmlDeviceGetClockInfo", card)
        return card.mhz

    def nvmlDeviceGetTemperature(self, card: Card, _sensor: int) -> int:
        return card.celsius

    def nvmlDeviceGetCpuAffinity(self, card: Card, words: int) -> list[int]:
        self._check("nvmlDeviceGetCpuAffinity", card)
        bits = sum(1 << core for core in card.cores)
        return [bits >> (64 * word) & (2**64 - 1) for word in range(words)]

    def nvmlDeviceGetP2PStatus(self, card: Card, other: Card, _capability: int) -> int:
        self._check("nvmlDeviceGetP2PStatus", card, other)
        pair = tuple(sorted((self.cards.index(card), self.cards.index(other))))
        return 0 if self._nvlinks is None or pair in self._nvlinks else 1

    def nvmlDeviceGetTopologyCommonAncestor(self, card: Card, other: Card) -> int:
        self._check("nvmlDeviceGetTopologyCommonAncestor", card, other)
        same = card.node == other.node
        return int(pynvml.NVML_TOPOLOGY_NODE if same else pynvml.NVML_TOPOLOGY_SYSTEM)

    def _check(self, name: str, *cards: Card) -> None:
        if any(name in card.lacks for card in cards):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def with_cards(monkeypatch: pytest.MonkeyPatch, library: StandIn) -> None:
    """This process sees these cards."""
    for module in ("devices", "gpu_load"):
        monkeypatch.setattr(f"playground.engine.{module}.opened", lambda: library)
