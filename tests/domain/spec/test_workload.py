"""Load profiles and the schedules that follow from them: pure, and the same for the same seed."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from playground.domain.spec.load_profile import (
    ConcurrencyProfile,
    LoadProfile,
    RampProfile,
    RateProfile,
    WavesProfile,
)
from playground.domain.spec.schedule import Planned, schedule

PROFILES = [
    ConcurrencyProfile(concurrency=4, requests=40),
    RateProfile(requests_per_s=10, requests=40),
    RateProfile(requests_per_s=10, arrivals="constant", requests=40),
    WavesProfile(concurrency=4, requests=40),
    RampProfile(first=1, last=8, requests=40),
]


def made(profile: LoadProfile, seed: int = 0, prompts: int = 5) -> list[Planned]:
    return list(islice(schedule(profile.pace, seed, prompts), 1000))


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: f"{profile.kind}")
def test_the_same_seed_gives_the_same_schedule(profile: LoadProfile) -> None:
    assert made(profile, 7) == made(profile, 7)
    assert [planned.prompt for planned in made(profile, 7)] != [planned.prompt for planned in made(profile, 8)]
    assert len(made(profile)) == 40


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: f"{profile.kind}")
def test_a_profile_survives_json(profile: LoadProfile) -> None:
    adapter: TypeAdapter[LoadProfile] = TypeAdapter(LoadProfile)
    assert adapter.validate_json(profile.model_dump_json()) == profile


def test_a_seed_means_the_same_for_ever() -> None:
    """Stored runs name their seed: a new Python, or a change here, must not give it another meaning."""
    planned = made(RateProfile(requests_per_s=10, requests=4), seed=1, prompts=3)
    assert [(item.prompt, round(item.at_ms, 3)) for item in planned] == GOLDEN


GOLDEN = [(0, 0.0), (1, 298.996), (2, 429.149), (2, 598.296)]


def test_each_pass_uses_every_prompt_once() -> None:
    order = [planned.prompt for planned in made(ConcurrencyProfile(requests=30), prompts=10)]
    passes = [order[start : start + 10] for start in (0, 10, 20)]
    assert all(sorted(one) == list(range(10)) for one in passes)
    assert passes[0] != passes[1]


def test_constant_rate_does_not_drift() -> None:
    planned = made(RateProfile(requests_per_s=3, arrivals="constant", requests=900))
    assert planned[0].at_ms == 0
    assert planned[-1].at_ms == pytest.approx(899 / 3 * 1000, abs=1e-6)
    assert {planned.limit for planned in planned} == {256}


def test_poisson_arrivals() -> None:
    planned = made(RateProfile(requests_per_s=100, requests=1000))
    gaps = [b.at_ms - a.at_ms for a, b in pairwise(planned)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(10, rel=0.1)
    # Exponential: as much spread as mean, and more short gaps than long ones.
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.15)
    assert sum(gap < mean for gap in gaps) / len(gaps) == pytest.approx(0.632, abs=0.05)


def test_more_prompts_do_not_move_the_offsets() -> None:
    profile = RateProfile(requests_per_s=10, requests=20)
    assert [p.at_ms for p in made(profile, prompts=2)] == [p.at_ms for p in made(profile, prompts=9)]


def test_time_ends_a_rate() -> None:
    planned = made(RateProfile(requests_per_s=10, arrivals="constant", duration_s=2))
    assert len(planned) == 20
    assert len(made(RateProfile(requests_per_s=10, arrivals="constant", duration_s=2, requests=5))) == 5


def test_a_schedule_that_only_time_ends_goes_on() -> None:
    assert len(made(ConcurrencyProfile(concurrency=3, duration_s=1))) == 1000


def test_waves_have_a_barrier_at_each_beginning() -> None:
    planned = made(WavesProfile(concurrency=3, requests=8))
    assert [item.barrier for item in planned] == [False, False, False, True, False, False, True, False]
    assert {item.limit for item in planned} == {3}


@pytest.mark.parametrize(
    ("first", "last", "requests", "limits"),
    [(1, 4, 4, [1, 2, 3, 4]), (4, 1, 4, [4, 3, 2, 1]), (2, 2, 3, [2, 2, 2]), (3, 9, 1, [3])],
)
def test_ramp(first: int, last: int, requests: int, limits: list[int]) -> None:
    profile = RampProfile(first=first, last=last, requests=requests)
    assert [planned.limit for planned in made(profile)] == limits
    assert profile.peak == max(first, last)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "concurrency", "concurrency": 4},
        {"kind": "concurrency", "concurrency": 0, "requests": 1},
        {"kind": "concurrency", "concurrency": 5000, "requests": 1},
        {"kind": "concurrency", "requests": 0},
        {"kind": "rate", "requests": 4},
        {"kind": "rate", "requests": 4, "requests_per_s": 0},
        {"kind": "rate", "requests": 4, "requests_per_s": 1, "arrivals": "bursts"},
        {"kind": "waves", "requests": 4},
        {"kind": "ramp", "last": 4, "duration_s": 5},
        {"kind": "waves", "concurrency": 2, "duration_s": -1},
        {"kind": "steps", "requests": 4},
    ],
)
def test_what_is_no_profile(given: dict[str, Any]) -> None:
    adapter: TypeAdapter[LoadProfile] = TypeAdapter(LoadProfile)
    with pytest.raises(ValidationError):
        adapter.validate_python(given)
