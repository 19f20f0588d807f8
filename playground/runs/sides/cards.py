"""Which cores and which GPUs each side gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import EngineSettings
from playground.engine.devices import Gpu, Machine, Placement


def place(
    sides: Sequence[EngineSettings], devices: Sequence[str], host: Machine, *, in_turns: bool = False
) -> list[Placement]:
    """A core set for each CPU side; for each GPU side the GPUs that it names, else GPUs of its own if possible.

    Where sides serve in turns nothing contends, and every CPU side gets the same cores: all but the first, which
    is left to the page and to the measuring process. Raises InvalidInput if one side alone needs more GPUs, or on
    a CPU more cores, than there are, and for GPUs that there are not.
    """
    on_cpu = [index for index, device in enumerate(devices) if device == "cpu"]
    placements: dict[int, Placement] = {}
    for position, index in enumerate(on_cpu):
        if (processes := sides[index].gpus) > len(host.cores):
            raise InvalidInput("settings.too_many_processes", wanted=processes, available=len(host.cores))
        cores = host.cores[1:] or host.cores if in_turns else _share(host.cores, position, len(on_cpu))
        placements[index] = Placement("cpu", cores=cores, contended=not in_turns)
    users = {gpu.index: 0 for gpu in host.gpus}
    chosen: dict[int, tuple[Gpu, ...]] = {}
    on_gpus = [index for index in range(len(sides)) if index not in placements]
    # Those with GPUs that they name first, then those that take most: near GPUs are the scarcest.
    for index in sorted(on_gpus, key=lambda index: (sides[index].cards == (), -sides[index].gpus)):
        chosen[index] = _cards(sides[index], host.gpus, users)
        for gpu in chosen[index]:
            users[gpu.index] += 1
    for index, gpus in chosen.items():
        sharing = max(users[gpu.index] for gpu in gpus)
        placements[index] = Placement(
            "cuda",
            cores=near_cores(gpus, host),
            gpus=tuple(gpu.index for gpu in gpus),
            sharing=sharing,
            contended=sharing > 1 and not in_turns,
        )
    return [placements[index] for index in range(len(sides))]


def near_cores(gpus: Sequence[Gpu], host: Machine) -> tuple[int, ...]:
    """The cores near these GPUs; empty where that is all of them, or unknown."""
    near = {core for gpu in gpus for core in gpu.cores} if all(gpu.cores for gpu in gpus) else set()
    cores = tuple(core for core in host.cores if core in near)
    return cores if len(cores) < len(host.cores) else ()


def _cards(side: EngineSettings, gpus: Sequence[Gpu], users: Mapping[int, int]) -> tuple[Gpu, ...]:
    if side.gpus > len(gpus):
        raise InvalidInput("settings.too_many_gpus", wanted=side.gpus, available=len(gpus))
    if side.cards:
        by_index = {gpu.index: gpu for gpu in gpus}
        if not len(set(side.cards)) == len(side.cards) == side.gpus or not set(side.cards) <= by_index.keys():
            raise InvalidInput(
                "settings.other_cards",
                key="knobs.cuda_visible_devices",
                cards=",".join(map(str, side.cards)),
                wanted=side.gpus,
                known=", ".join(map(str, by_index)),
            )
        return tuple(by_index[index] for index in side.cards)

    def cost(cards: Sequence[Gpu]) -> tuple[int, ...]:
        """What matters most first. A slice is no whole card, and others on a card falsify a measurement: rather
        share one with the other side."""
        return (
            sum(gpu.mig for gpu in cards),
            sum(gpu.busy for gpu in cards),
            sum(users[gpu.index] for gpu in cards),
            sum(first.distance(second.index) for first, second in combinations(cards, 2)),
        )

    # Of equally good ones the first, in the order of their indices.
    return min(combinations(gpus, side.gpus), key=cost)


def _share(cores: tuple[int, ...], position: int, parts: int) -> tuple[int, ...]:
    """An equal, contiguous part of the cores; all of them where there are fewer cores than sides."""
    size = len(cores) // parts
    return cores[position * size : (position + 1) * size] if size else cores
