"""What this host allows, which runtime each side has, and on which devices its engine will run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings, SideSettings
from playground.engine import command, runtime
from playground.engine.devices import Machine, Placement
from playground.engine.runtime import Runtime
from playground.load.endpoint import Endpoint
from playground.models import folders

from .cards import place


@dataclass(frozen=True)
class PlannedEngine:
    """The engine of one side: which runtime will start it, and where it will run."""

    label: str
    settings: EngineSettings
    runtime: Runtime
    placement: Placement


def check_allowed(config: Config, run: Run) -> None:
    """Raises InvalidInput for what this host does not allow, and for two sides of one label."""
    labels = Counter(side.label for side in run.sides)
    for label, count in labels.most_common(1):
        if count > 1:
            raise InvalidInput("settings.same_label", side=label, key="label", label=label)
    for side in run.sides:
        settings = side.settings
        if isinstance(settings, AttachedEndpoint):
            attached(config, settings)
            continue
        if settings.extra_flags and not config.extra_flags:
            raise InvalidInput("settings.extra_flags_off", side=side.label, key="extra_flags")
        if settings.trust_remote_code and not config.trust_remote_code:
            raise InvalidInput("settings.remote_code_off", side=side.label, key="trust_remote_code")
        runtime.check_name(config, settings.runtime)
        for name in (settings.target, settings.draft):
            if name:
                folders.check_allowed(config, name)


def attached(config: Config, settings: AttachedEndpoint) -> Endpoint:
    """Raises InvalidInput for an endpoint that this host does not allow."""
    return Endpoint.attached(config, settings.base_url, settings.model, settings.api)


def runtimes(config: Config, sides: Iterable[SideSettings]) -> dict[str, Runtime]:
    """The runtimes that these sides name, probed. Blocking: the first probe imports vLLM. Raises WorkFailed where
    a runtime has no usable vLLM."""
    names = {settings.runtime for settings in sides if isinstance(settings, EngineSettings)}
    return {name: runtime.probe(config, name) for name in names}


def check_runtimes(config: Config, sides: Iterable[tuple[str, SideSettings]]) -> dict[str, Runtime]:
    """Returns the runtimes. Raises InvalidInput for what a side's runtime lacks; sides come with their labels.
    Blocking."""
    labelled = [(label, settings) for label, settings in sides if isinstance(settings, EngineSettings)]
    probed = runtimes(config, [settings for _, settings in labelled])
    for label, settings in labelled:
        command.check(settings, probed[settings.runtime], label)
    return probed


def engines(run: Run, probed: dict[str, Runtime], host: Machine) -> dict[int, PlannedEngine]:
    """The engines of the run, by the index of their side. Raises InvalidInput where a side needs more GPUs than
    there are."""
    sides = [
        (index, side.label, side.settings)
        for index, side in enumerate(run.sides)
        if isinstance(side.settings, EngineSettings)
    ]
    placements = place(
        [settings for _, _, settings in sides],
        [probed[settings.runtime].device for _, _, settings in sides],
        host,
        in_turns=run.mode == "measured",
    )
    return {
        index: PlannedEngine(label, settings, probed[settings.runtime], placement)
        for (index, label, settings), placement in zip(sides, placements, strict=True)
    }
