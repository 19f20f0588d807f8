"""What to change after a failure: advice in a sentence, and changes of the failing side's settings.

Nothing of this is stored: it follows from the stored problem and the stored settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from playground.domain.fit import card
from playground.domain.message import Message
from playground.domain.record.run import SideRecord
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.engine.kinds.table import KINDS

from . import remedy_rules
from .causes import BY_NAME
from .remedy_rules import Changes, Rule

# Rules for problems that do not come from a log, by message id.
OTHER_RULES: dict[str, Rule] = {
    "settings.too_many_gpus": remedy_rules.available_gpus,
    "preflight.weights_too_big": remedy_rules.no_draft,
    "preflight.no_sequence": remedy_rules.shorter_sequence,
    "preflight.card_bf16": remedy_rules.set_to("knobs.dtype", "float16"),
    "preflight.card_backend": remedy_rules.back_to_default("attention_backend"),
    "preflight.card_quantization": remedy_rules.back_to_default("quantization"),
    "preflight.together": remedy_rules.back_to_default("gpu_memory_utilization"),
    "preflight.heterogeneous_greedy": remedy_rules.set_to("speculation.draft_sample_method", None),
    **dict.fromkeys(
        ("preflight.padding", "preflight.vocabulary_size", "preflight.other_vocabulary"),
        remedy_rules.mapped_vocabulary,
    ),
    **dict.fromkeys(
        ("preflight.no_heterogeneous", "preflight.method_not_on_cpu", "preflight.no_arctic", "preflight.min_p"),
        remedy_rules.no_speculation,
    ),
    **dict.fromkeys(
        ("model.no_hub", "model.hub_missing", "model.gated", "model.unknown"), remedy_rules.without_missing_draft
    ),
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """`advice` says what helps. Each of `changes` is worth a try by itself, the most promising first."""

    advice: Message
    changes: tuple[Change, ...] = ()


def remedy_of(side: SideRecord, machine: Mapping[str, object]) -> Remedy | None:
    """What to change after this side's problem; None if it has none, or if no change of settings helps.

    `machine`: the run's, as it was recorded; what its cards can't do is not offered.
    """
    problem, settings = side.problem, side.settings
    if problem is None or not isinstance(settings, EngineSettings):
        return None
    weakest = card.weakest(machine)
    changes = tuple(
        change
        for change in _changes(problem, settings)
        if _differs(change, settings) and _has(settings, change) and card.allows(settings, change, weakest)
    )
    section, _, name = problem.message_id.partition(".")
    if section == "failure":
        return Remedy(Message(f"remedy.{name}", problem.params), changes)
    # Other sentences say themselves what to do.
    return Remedy(Message("remedy.change"), changes) if changes else None


def _changes(problem: Message, settings: EngineSettings) -> Changes:
    if problem.message_id == "preflight.both":
        problems = [part for part in problem.params.values() if isinstance(part, Message)]
        # Changes that resolve either problem.
        return list(dict.fromkeys(change for part in problems for change in _changes(part, settings)))
    section, _, name = problem.message_id.partition(".")
    if section == "failure" and name in BY_NAME:
        return BY_NAME[name].changes(problem.params, settings)
    return OTHER_RULES.get(problem.message_id, remedy_rules.nothing)(problem.params, settings)


def _has(settings: EngineSettings, change: Change) -> bool:
    """Whether the engine has this setting."""
    kind, (section, _, name) = KINDS.get(settings.runtime), change.key.partition(".")
    return kind is None or section != "knobs" or name in kind.knobs


def _differs(change: Change, settings: EngineSettings) -> bool:
    """Whether the settings allow it, and do not say so already."""
    try:
        return change.apply(settings) != settings
    except ValidationError:
        return False


def change_label(change: Change) -> Message:
    """The label of the button that makes this change."""
    name = change.key.rpartition(".")[2]
    if change.key == "speculation" and change.value == "off":
        return Message("change.speculation_off")
    if change.value is None:
        return Message("change.default", {"name": name})
    value = str(change.value).lower() if isinstance(change.value, bool) else change.value
    return Message("change.set", {"name": name, "value": value})
