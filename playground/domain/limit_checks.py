"""Checks what a run is made of against the host's limits: numbers, texts, and products of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .limits import MOST, Limits
from .record.run import Run, SideRecord
from .spec.load_profile import LoadProfile, RateProfile
from .spec.measurement import Measurement, SyntheticPrompts
from .spec.settings import EngineSettings
from .spec.workload import Prompt, Workload


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
