"""Speculation off on the same path: what vLLM switches off or replaces for a speculation method, and the side that
has only that in common with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .case import Side
from .settings import EngineSettings, Knobs
from .speculation import SpeculationOff

LABEL = "Off, same path"
# Methods that asynchronous scheduling never supported, and those that runner V1 alone supports (vLLM 0.26 to 0.33,
# config/vllm.py). In 0.26 more were so; by 0.32 it supports them; of the versions between nothing is certain.
NO_ASYNC, NO_ASYNC_026 = {"ngram", "suffix"}, {"draft_model", "dflash"}
V1_ONLY, V1_ONLY_026 = {"suffix"}, {"ngram", "ngram_gpu", "draft_model"}
OLD, NEW = (0, 26), (0, 32)
# Drafts of one pass, which V2 has for these alone.
PARALLEL_V2 = {"dflash", "dspark"}


@dataclass(frozen=True, slots=True)
class Withheld:
    """What vLLM certainly withholds from an engine: asynchronous scheduling, runner V2."""

    async_scheduling: bool
    v2_model_runner: bool

    @property
    def anything(self) -> bool:
        return self.async_scheduling or self.v2_model_runner


def unsupported(engine: EngineSettings, version: str) -> Withheld:
    """What vLLM certainly does not support for this engine's speculation on a GPU."""
    method, fields = engine.speculation.method, engine.speculation.model_dump()
    release = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    old = release <= OLD
    v1 = method in V1_ONLY or (old and method in V1_ONLY_026)
    v1 = v1 or (bool(fields.get("parallel_drafting")) and method not in PARALLEL_V2)
    v1 = v1 or (release >= NEW and bool(fields.get("use_heterogeneous_vocab")))
    return Withheld(method in NO_ASYNC or (old and method in NO_ASYNC_026), v1)


def withheld(engine: EngineSettings, version: str, device: str) -> Withheld:
    """What this engine certainly lacks that it has with speculation off, where no knob decides it. `device`: "cpu"
    or "cuda"; on a CPU no engine has either."""
    if device == "cpu":
        return Withheld(False, False)
    lacks, knobs = unsupported(engine, version), engine.knobs
    return Withheld(
        lacks.async_scheduling and knobs.async_scheduling is None,
        lacks.v2_model_runner and knobs.use_v2_model_runner is None,
    )


def same_path(side: Side, version: str, device: str) -> Side | None:
    """The side with speculation off that withholds the same; None where nothing is certainly withheld."""
    engine = side.engine
    if not isinstance(engine, EngineSettings):
        return None
    lost = withheld(engine, version, device)
    if not lost.anything:
        return None
    knobs = engine.knobs.overrides()
    if lost.async_scheduling:
        knobs["async_scheduling"] = False
    if lost.v2_model_runner:
        knobs["use_v2_model_runner"] = False
    changed = {"speculation": SpeculationOff(), "knobs": Knobs.model_validate(knobs)}
    return side.model_copy(update={"label": LABEL, "engine": engine.model_copy(update=changed)})
