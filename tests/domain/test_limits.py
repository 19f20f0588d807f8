"""Every number, text and product of numbers that a run is made of has a limit, which the error names."""

from __future__ import annotations

from pathlib import Path

import pytest

from playground import presets, prompts
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.limit_checks import check_prompts, check_run, requests_of
from playground.domain.limits import Limits
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile, LoadProfile, RateProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.workload import ChatMessage, Prompt, Sampling, Workload
from playground.i18n import LOCALES, say_message
from playground.runs.host import Host

PLAIN = EngineSettings(target="model")
LONG = "x" * 5_000_000
A_SIDE = SideRecord("A", PLAIN)


def run(side: SideRecord = A_SIDE, workload: Workload | None = None, plan: Measurement | None = None) -> Run:
    workload = workload or Workload(prompt="x")
    return Run("r", "2026", "measured" if plan else "race", workload=workload, measurement=plan, sides=[side])


def knobs(**sizes: int) -> SideRecord:
    return SideRecord("A", EngineSettings(target="model", knobs=Knobs.model_validate(sizes)))


def asking(tokens: int) -> Workload:
    return Workload(prompt="x", sampling=Sampling(max_tokens=tokens))


def under(profile: LoadProfile, rounds: int = 20) -> Measurement:
    return Measurement(profile=profile, max_rounds=rounds)


def generated(tokens: int, count: int) -> Measurement:
    return Measurement(prompts=SyntheticPrompts(input_tokens=tokens, count=count))


TOO_MUCH = {
    "label_characters": run(SideRecord(LONG, PLAIN)),
    "settings_characters": run(SideRecord("A", EngineSettings(target="model", extra_flags=("x" * 20_000,) * 6))),
    "settings_characters: stop": run(workload=Workload(prompt="x", sampling=Sampling(stop=(LONG,)))),
    "conversation_characters": run(workload=Workload(prompt=LONG)),
    "conversation_characters: system": run(workload=Workload(prompt="x", system=LONG)),
    "conversation_characters: turns": run(
        workload=Workload(prompt="x", turns=(ChatMessage(role="user", content="x" * 3_000_000),) * 2)
    ),
    "prompts": run(plan=generated(1, 10_000)),
    "synthetic_tokens": run(plan=generated(1_000_000, 9_000)),
    "run_requests": run(plan=under(ConcurrencyProfile(requests=2**60))),
    "run_requests: product": run(plan=under(ConcurrencyProfile(requests=10_000), rounds=200)),
    "run_requests: rate": run(plan=under(RateProfile(requests_per_s=1e300, duration_s=1e300))),
    "run_requests: of a side": run(
        SideRecord("A", PLAIN, profile=ConcurrencyProfile(requests=2**60)),
        plan=under(ConcurrencyProfile(requests=8)),
    ),
    "output_tokens": run(workload=asking(10**9)),
    "trial_output_tokens": run(workload=asking(200_000), plan=under(ConcurrencyProfile(requests=1000), rounds=6)),
    "engine_processes": run(knobs(data_parallel_size=1_000_000)),
    "engine_processes: product": run(
        knobs(tensor_parallel_size=8, pipeline_parallel_size=8, data_parallel_size=8)
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_a_run_above_a_limit_is_refused_with_its_name(case: str) -> None:
    limits = Limits(prompts=9_999)
    name = case.partition(":")[0]
    with pytest.raises(InvalidInput) as caught:
        check_run(limits, TOO_MUCH[case])
    assert caught.value.params["name"] == name
    for locale in LOCALES:
        sentence = say_message(caught.value, locale)
        assert f'PLAYGROUND_LIMITS="{name}=' in sentence
        assert f"{getattr(limits, name):,}" in sentence
        assert len(sentence) < 1000


def test_every_preset_is_within_the_limits() -> None:
    for name in presets.names():
        preset = presets.load(name)
        for side in preset.sides:
            record = SideRecord(side.label, side.engine, profile=side.profile)
            check_run(Limits(), run(record, preset.workload, preset.measurement))


def test_only_the_answers_speed_decides_how_many_are_sent() -> None:
    assert requests_of(ConcurrencyProfile(duration_s=1e9)) == 0
    assert requests_of(ConcurrencyProfile(requests=5, duration_s=1e9)) == 5
    assert requests_of(RateProfile(requests_per_s=2.5, duration_s=3)) == 8


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(prompts=2), "prompts"),
        (Limits(conversation_characters=9), "conversation_characters"),
        (Limits(prompts_characters=29), "prompts_characters"),
        (Limits(output_tokens=6), "output_tokens"),
    ],
)
def test_prompts_above_a_limit(limits: Limits, name: str) -> None:
    three = [Prompt(conversation=(ChatMessage(role="user", content="x" * 10),), max_tokens=7)] * 3
    check_prompts(Limits(), three)
    with pytest.raises(InvalidInput) as caught:
        check_prompts(limits, three)
    assert caught.value.params["name"] == name


@pytest.mark.parametrize("suffix", [".txt", ".json", ".jsonl", ".csv"])
def test_a_file_of_prompts_is_not_read_beyond_the_limit(suffix: str, tmp_path: Path) -> None:
    """20 MB of nested brackets, for one."""
    path = tmp_path / f"deep{suffix}"
    path.write_text("[" * 3_000_000)
    with pytest.raises(InvalidInput):
        prompts.read(path, Limits(conversation_characters=2_000_000))


def test_a_presets_file_is_not_read_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 3_000_000)
    with pytest.raises(InvalidInput, match="preset_bytes"):
        presets.load(str(path))
    with pytest.raises(InvalidInput, match="not_toml"):
        presets.load(str(path), Limits(preset_bytes=4_000_000))


def test_the_host_checks_before_anything_starts(config: Config) -> None:
    side = Side(label="A", engine=EngineSettings(target="model", knobs=Knobs(data_parallel_size=1_000_000)))
    with pytest.raises(InvalidInput, match="engine_processes"):
        Host(config).comparison((side, side.model_copy(update={"label": "B"})), Workload(prompt="x"))
