"""How much one visitor, one file or one endpoint may ask of this host: every limit, and the check of a run.

The host sets them with PLAYGROUND_LIMITS; the table in docs/configuration.md is checked against the fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.load_profile import LoadProfile, RateProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Prompt, Workload
from playground.domain.validation import nearest_of

# No limit is larger: their products stay within what a float holds exactly enough.
MOST = 10**15


@dataclass(frozen=True)
class Limits:
    """The most that is accepted of each; names end with the unit where it is not a count of the thing itself."""

    # What a form, a preset or the command line may hold.
    label_characters: int = 200
    settings_characters: int = 100_000
    conversation_characters: int = 4_000_000
    prompts: int = 10_000
    prompts_characters: int = 40_000_000
    synthetic_tokens: int = 4_000_000
    run_requests: int = 1_000_000
    output_tokens: int = 262_144
    trial_output_tokens: int = 100_000_000
    engine_processes: int = 64
    sweep_points: int = 256
    waiting_runs: int = 20
    # What is sent to the page.
    upload_bytes: int = 20_000_000
    body_bytes: int = 8_000_000
    preset_bytes: int = 1_000_000
    # What an endpoint or engine sends.
    response_bytes: int = 256_000_000
    event_bytes: int = 16_000_000
    load_bytes: int = 2_000_000_000
    log_bytes: int = 50_000_000

    @classmethod
    def of(cls, changes: Iterable[tuple[str, str]]) -> Self:
        """The defaults with these changes. Raises InvalidInput for an unknown name or a value that is no limit."""
        names = [field.name for field in fields(cls)]
        values: dict[str, int] = {}
        for name, text in changes:
            if name not in names:
                raise InvalidInput("limits.unknown", name=name, nearest=nearest_of(name, names))
            whole = text.isascii() and text.isdecimal() and len(text) <= len(str(MOST))
            if not whole or not 1 <= int(text) <= MOST:
                raise InvalidInput("limits.bad_value", name=name, value=text, most=MOST)
            values[name] = int(text)
        return cls(**values)

    def check(self, name: str, value: int, side: str | None = None) -> None:
        """Raises InvalidInput, which names the limit, if the value is above it. `side`: the label of its side."""
        limit: int = getattr(self, name)
        if value > limit:
            what = Message(f"limit.{name}")
            of_side = {} if side is None else {"side": side}
            raise InvalidInput("limits.exceeded", **of_side, what=what, value=value, limit=limit, name=name)


DEFAULTS = Limits()


def check_run(limits: Limits, run: Run) -> None:
    """Raises InvalidInput for a run of which a number, a text or a product of numbers is above its limit."""
    for side in run.sides:
        limits.check("label_characters", len(side.label))
        limits.check("settings_characters", len(side.settings.model_dump_json()), side.label)
        if isinstance(side.settings, EngineSettings):
            limits.check("engine_processes", side.settings.gpus, side.label)
    workload = run.workload
    limits.check("conversation_characters", characters(Prompt(conversation=workload.conversation)))
    limits.check("settings_characters", sum(map(len, workload.sampling.stop)))
    limits.check("output_tokens", workload.sampling.max_tokens)
    if run.measurement is not None:
        _check_measurement(limits, run.sides, workload, run.measurement)


def _check_measurement(
    limits: Limits, sides: Iterable[SideRecord], workload: Workload, measurement: Measurement
) -> None:
    if isinstance(measurement.prompts, SyntheticPrompts):
        limits.check("prompts", measurement.prompts.count)
        limits.check("synthetic_tokens", measurement.prompts.input_tokens * measurement.prompts.count)
    trials = [requests_of(side.profile or measurement.profile) for side in sides]
    limits.check("run_requests", sum(trials) * measurement.max_rounds)
    limits.check("trial_output_tokens", max(trials) * workload.sampling.max_tokens)


def check_prompts(limits: Limits, prompts: Iterable[Prompt]) -> None:
    """Raises InvalidInput for a prompt that is above its limits, or too many characters of all together."""
    total = 0
    for number, prompt in enumerate(prompts, 1):
        limits.check("prompts", number)
        limits.check("conversation_characters", length := characters(prompt))
        limits.check("prompts_characters", total := total + length)
        limits.check("output_tokens", prompt.max_tokens or 1)


def characters(prompt: Prompt) -> int:
    """How long the conversation is: all turns."""
    return sum(len(message.content) for message in prompt.conversation)


def requests_of(profile: LoadProfile) -> int:
    """How many requests a trial sends at most by its settings; 0 where only the answers' speed decides, so that
    the driver has to count."""
    counts = [] if profile.requests is None else [profile.requests]
    if isinstance(profile, RateProfile) and profile.duration_s is not None:
        due = profile.requests_per_s * profile.duration_s
        counts.append(math.ceil(due) if due < MOST else MOST)
    return min(counts, default=0)
