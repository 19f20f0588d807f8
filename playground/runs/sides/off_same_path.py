"""The side that measures speculation by itself: off, on the path of a side that speculates."""

from __future__ import annotations

from collections.abc import Sequence

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.case import MOST_SIDES, Side
from playground.domain.spec.engines import TITLES
from playground.domain.spec.same_path import LABEL, same_path
from playground.domain.spec.settings import EngineSettings
from playground.engine import runtime


def off_same_path(config: Config, sides: Sequence[Side]) -> Side:
    """For the first side from whose engine vLLM withholds something. Blocking: probes its runtime.

    Raises InvalidInput where there is none, where that side is there already, and where no side has room;
    WorkFailed without vLLM.
    """
    if len(sides) >= MOST_SIDES:
        raise InvalidInput("path.no_room", most=MOST_SIDES)
    speculating = [
        side
        for side in sides
        if isinstance(side.engine, EngineSettings) and side.engine.speculates and side.engine.runtime not in TITLES
    ]
    if not speculating:
        raise InvalidInput("path.none_speculates")
    for side in speculating:
        assert isinstance(side.engine, EngineSettings)
        build = runtime.probe(config, side.engine.runtime)
        plain = same_path(side, build.version, build.device)
        if plain is not None and all((plain.engine, plain.profile) != (s.engine, s.profile) for s in sides):
            taken = {other.label for other in sides}
            names = (LABEL, *(f"{LABEL} ({number})" for number in range(2, MOST_SIDES + 1)))
            return plain.model_copy(update={"label": next(name for name in names if name not in taken)})
    raise InvalidInput("path.same_already", version=build.version, device=build.device)
