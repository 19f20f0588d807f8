"""Claims, from runs and sweeps of known speeds: each figure on both sides of its threshold, and in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import get_args

import numpy as np
import pytest
from support.schema import check

from playground import presets
from playground.domain.claims.claims import CLAIMS, ClaimedFigure, ClaimName, Standing
from playground.domain.claims.ratios import mean_answer
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.load_profile import WavesProfile
from playground.domain.spec.workload import ChatMessage, Conversation
from playground.domain.stats.ratios import Ratio, mean, quotient
from playground.domain.stats.verdicts import Verdict, compare
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import LOCALES, say_message
from playground.report.claims import claim_of
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.sweep import conclusions_of, sweep_document
from playground.runs.sweep import new_sweep

TOKENS = 11
GAP_MS = 20.0
# Each round is off by so much, one way and the other: 1% of noise, and no trend.
NOISE = (1.01, 0.99, 1.0, 1.01, 0.99, 1.0)
ASK: Conversation = (ChatMessage(role="user", content="a short one"),)
LONG: Conversation = (ChatMessage(role="user", content="a long one"),)


def request(sent_ms: float, ms: float, asks: Conversation = ASK) -> RequestTrace:
    """TOKENS tokens, the last one `ms` after the send; all evenly apart."""
    chunks = [Chunk(ms * (1 + j) / TOKENS, 1, "w ", (j,)) for j in range(TOKENS)]
    return RequestTrace(asks, sent_ms, chunks, "length", 5, TOKENS, ended=True)


def trial_of(speed: float) -> list[RequestTrace]:
    return [request(0.0, GAP_MS * TOKENS / speed) for _ in range(2)]


def run_of(
    preset: presets.Preset, trials: Sequence[Callable[[float], list[RequestTrace]]], rounds: int = 6
) -> Run:
    """As the preset has it; each side's trials are made from that round's noise."""
    sides = [SideRecord(side.label, side.engine, profile=side.profile) for side in preset.sides]
    for number in range(rounds):
        for position, (side, made) in enumerate(zip(sides, trials, strict=True)):
            noise = NOISE[(number + position) % len(NOISE)] if position else 1.0
            side.trials.append(Trial(number, 1000.0 * number, made(noise), complete=True))
    return Run(
        "run", "2030-01-02T03:04:05+01:00", "measured", preset.workload, sides, preset.measurement, preset.name,
        status="done",
    )  # fmt: skip


def at_speeds(preset: presets.Preset, *speeds: float, rounds: int = 6) -> Run:
    return run_of(preset, [lambda noise, own=own: trial_of(own * noise) for own in speeds], rounds)


def sweep_of(preset: presets.Preset, run_at: Callable[[object], Run | None]) -> Sweep:
    assert preset.sweep is not None
    sweep = new_sweep(preset.sweep, preset.case, preset.name)
    for point in sweep.points:
        point.run = run_at(point.values[0])
    sweep.status = "done"
    return sweep


def swept(name: str, speeds: Mapping[int, float]) -> Sweep:
    """The second side's speed-up over the first, by the knob's value; others were not measured."""
    preset = presets.load(name)

    def run_at(value: object) -> Run | None:
        return at_speeds(preset, 1.0, speeds[value]) if isinstance(value, int) and value in speeds else None

    return sweep_of(preset, run_at)


def standing(subject: Run | Sweep) -> Standing:
    """Also: the last sentences say it, and the document has it, in each language."""
    found = claim_of(subject)
    assert found is not None
    assert (found.reason is None) == (found.standing != "can't be said here")
    if isinstance(subject, Run):
        concluded = [item.sentence for item in conclusions(subject)]
    else:
        concluded = conclusions_of(SweepAnalysis.of(subject))
    assert concluded[-3:] == found.sentences()
    for locale in LOCALES:
        said = [say_message(sentence, locale) for sentence in found.sentences()]
        if isinstance(subject, Run):
            told = check("compare", compare_document(subject, locale))["claim"]
        else:
            told = check("sweep", sweep_document(SweepAnalysis.of(subject), locale))["claim"]
        assert [told["claim"], told["measured"]] == said[:2]
        assert told["outcome"] == found.standing
    return found.standing


@pytest.mark.parametrize(
    ("speed", "expected"), [(2.1, "holds"), (1.9, "does not hold"), (2.0, "can't be said here")]
)
def test_batching(speed: float, expected: Standing) -> None:
    assert standing(at_speeds(presets.load("batching-16-vs-64"), 1.0, speed)) == expected


@pytest.mark.parametrize(
    ("speed", "expected"), [(1.3, "holds"), (1.1, "does not hold"), (1.18, "can't be said here")]
)
def test_gpu_memory(speed: float, expected: Standing) -> None:
    assert standing(at_speeds(presets.load("gpu-memory-085-vs-095"), 1.0, speed)) == expected


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ((1.0, 2.5, 3.2, 2.0), "holds"),
        ((1.0, 2.5, 3.2, 9.0), "holds"),
        ((1.0, 1.8, 3.2, 3.2), "does not hold"),
        ((1.0, 2.5, 2.8, 2.8), "does not hold"),
        ((1.0, 2.5, 3.0, 3.0), "can't be said here"),
    ],
)
def test_four_rows(speeds: tuple[float, ...], expected: Standing) -> None:
    assert standing(at_speeds(presets.load("four-row-table"), *speeds)) == expected


@pytest.mark.parametrize(
    ("start", "past", "expected"),
    [
        (1.5, 1.5, "holds"),
        (1.5, 1.1, "holds"),
        (1.5, 1.8, "does not hold"),
        (0.9, 0.9, "does not hold"),
        (1.0, 0.9, "can't be said here"),
        (1.5, 1.575, "can't be said here"),
    ],
)
def test_useful_k(start: float, past: float, expected: Standing) -> None:
    assert (
        standing(swept("smollm2-k-1-to-10-ngram", {k: start if k <= 8 else past for k in range(1, 11)}))
        == expected
    )


def test_without_what_lies_past_eight_nothing_is_said() -> None:
    assert standing(swept("k-1-to-10", {5: 1.5, 8: 1.5})) == "can't be said here"
    # But where the start does not gain, that is enough.
    assert standing(swept("k-1-to-10", {5: 0.8})) == "does not hold"


@pytest.mark.parametrize(
    ("single", "load", "expected"),
    [
        (1.05, 1.4, "holds"),
        (1.4, 1.5, "does not hold"),
        (0.7, 0.8, "does not hold"),
        (1.1, 1.05, "does not hold"),
        (1.1, 1.1, "can't be said here"),
        (1.2, 1.5, "can't be said here"),
    ],
)
def test_under_load(single: float, load: float, expected: Standing) -> None:
    speeds = {1: single, 2: single, 4: single, 8: load, 16: load, 64: load}
    assert standing(swept("smollm2-speculation-under-load", speeds)) == expected


def waved(fast: float, slow: float) -> Callable[[float], list[RequestTrace]]:
    """Waves of a quick answer and a slow one each."""
    return lambda noise: [request(1000.0 * (at // 4), slow if at % 4 else fast) for at in range(8)]


@pytest.mark.parametrize(
    ("speed", "ms", "expected"),
    [
        (3.3, 300.0, "holds"),
        (2.7, 300.0, "does not hold"),
        (3.3, 660.0, "does not hold"),
        (3.3, 600.0, "can't be said here"),
    ],
)
def test_continuous_against_static(speed: float, ms: float, expected: Standing) -> None:
    """A static wave takes 1 s for its 4 answers, and hands all of them back then."""
    preset = presets.load("smollm2-continuous-vs-static")
    span = 2000.0 / speed

    def continuous(noise: float) -> list[RequestTrace]:
        own = ms / noise
        return [request((span / noise - own) * at / 7, own) for at in range(8)]

    assert standing(run_of(preset, [waved(100.0, 1000.0), continuous])) == expected


def test_a_static_batch_answers_when_its_longest_has_ended() -> None:
    trial = Trial(requests=waved(100.0, 1000.0)(1.0), complete=True)
    plain = presets.load("smollm2-continuous-vs-static").measurement.profile
    assert mean_answer(trial, WavesProfile(concurrency=4, requests=8)) == pytest.approx(1000)
    assert mean_answer(trial, plain) == pytest.approx(775)
    trial.requests[-1].problem = Message("stream.cut")
    assert mean_answer(trial, plain) is None


def mixture(preset: presets.Preset, value: object, among: float, limited: float) -> Run:
    """Short answers take 100 ms alone, `among` ms among long ones, and `limited` of that on the second side."""

    def trial(short_ms: float) -> list[RequestTrace]:
        long = [request(0.0, 9000.0, LONG)] if value != "short" else []
        return [request(0.0, short_ms), request(50.0, short_ms), *long]

    short_ms = 100.0 if value == "short" else among
    return run_of(preset, [lambda _: trial(short_ms), lambda noise: trial(short_ms * limited * noise)])


@pytest.mark.parametrize(
    ("among", "limited", "expected"),
    [
        (900.0, 0.5, "holds"),
        (700.0, 0.5, "does not hold"),
        (900.0, 1.2, "does not hold"),
        (900.0, 1.0, "can't be said here"),
    ],
)
def test_short_requests(among: float, limited: float, expected: Standing) -> None:
    preset = presets.load("smollm2-short-among-long")
    assert standing(sweep_of(preset, lambda value: mixture(preset, value, among, limited))) == expected


def test_half_of_that_sweep_says_nothing() -> None:
    preset = presets.load("short-among-long")
    only = sweep_of(preset, lambda value: mixture(preset, value, 900.0, 0.5) if value == "short" else None)
    only.status = "stopped"
    assert standing(only) == "can't be said here"


# When a claim is judged at all


def test_too_few_rounds() -> None:
    assert standing(at_speeds(presets.load("batching-16-vs-64"), 1.0, 9.0, rounds=5)) == "can't be said here"


def test_a_ratio_that_moves_says_nothing() -> None:
    run = at_speeds(presets.load("batching-16-vs-64"), 1.0, 1.0)
    for number, trial in enumerate(run.sides[1].trials):
        trial.requests = trial_of(0.2 * 3.0**number)
    assert standing(run) == "can't be said here"


def test_only_the_experiment_itself_is_judged() -> None:
    preset = presets.load("batching-16-vs-64")
    assert preset.measurement.profile.requests
    changed = preset.measurement.profile.model_copy(update={"requests": 3})
    for key, value in (
        ("preset", None),
        ("preset", "nothing-like-it"),
        ("preset", "kv-cache-fp8"),
        ("status", "running"),
        ("status", "failed"),
        ("measurement", None),
        ("measurement", preset.measurement.model_copy(update={"prompts": "chat"})),
        ("measurement", preset.measurement.model_copy(update={"profile": changed})),
        ("workload", preset.workload.model_copy(update={"prompt": "another"})),
    ):
        run = at_speeds(preset, 1.0, 3.0)
        setattr(run, key, value)
        assert claim_of(run) is None, key
    run = at_speeds(preset, 1.0, 3.0)
    run.sides[1].settings = run.sides[0].settings
    assert claim_of(run) is None
    # More time is no other experiment.
    run = at_speeds(preset, 1.0, 3.0)
    run.measurement = preset.measurement.model_copy(update={"budget_s": 9.0, "max_rounds": 40})
    assert claim_of(run) is not None


def test_a_sweep_with_other_values_is_another_experiment() -> None:
    sweep = swept("k-1-to-10", {5: 1.5})
    sweep.plan = sweep.plan.model_copy(
        update={"knobs": (sweep.plan.knobs[0].model_copy(update={"values": (5,)}),)}
    )
    assert claim_of(sweep) is None
    # Measured instead of swept, its two sides alone say nothing of other k.
    assert claim_of(at_speeds(presets.load("k-1-to-10"), 1.0, 1.5)) is None


def test_every_claim_has_an_experiment() -> None:
    made = {presets.load(name).claim for name in presets.names()} - {None}
    assert made == set(get_args(ClaimName)) == set(CLAIMS)


def test_a_preset_that_is_no_experiment_on_its_claim() -> None:
    preset = presets.load("four-row-table")
    for update in ({"claim": "batching"}, {"claim": "useful_k"}):
        with pytest.raises(ValueError, match="no_experiment"):
            presets.Preset.model_validate({**preset.model_dump(by_alias=True), **update})


# Ratios


def verdict(values: Sequence[float]) -> Verdict:
    return compare([{"a": 1.0, "b": value} for value in values], "b", "a", "throughput")


def test_a_ratio_is_its_verdict() -> None:
    found = verdict([2.0, 2.1, 1.9, 2.0, 2.05, 1.95])
    ratio = Ratio.of_verdict(found)
    assert ratio is not None
    assert ratio.value == pytest.approx(found.speed_up)
    assert ratio.interval == pytest.approx(found.interval)
    assert ratio.inverse.interval == pytest.approx((1 / ratio.interval[1], 1 / ratio.interval[0]))
    assert Ratio.of_verdict(verdict([2.0] * 5)) is None


def test_of_values() -> None:
    values = [200.0, 220.0, 210.0, 190.0, 205.0, 195.0]
    ratio = Ratio.of_values(values)
    assert ratio is not None
    logs = [log(value) for value in values]
    assert ratio.value == pytest.approx(exp(fmean(logs)))
    assert ratio.error == pytest.approx(stdev(logs) / sqrt(6))
    assert Ratio.of_values(values[:5]) is None
    assert Ratio.of_values([*values, None]) is None


def test_quotients_and_means_cover_the_truth() -> None:
    """95% of the intervals do, in 2000 experiments with unlike spreads; without noise they have no width."""
    random, right = np.random.default_rng(3), [0, 0]
    for _ in range(2000):
        one, other = (
            Ratio.of_values(list(np.exp(random.normal(log(truth), spread, 6))))
            for truth, spread in ((3.0, 0.05), (2.0, 0.2))
        )
        assert one is not None
        assert other is not None
        for index, (made, truth) in enumerate(((quotient(one, other), 1.5), (mean([one, other]), sqrt(6)))):
            low, high = made.interval
            right[index] += low < truth < high
    assert all(0.935 < count / 2000 < 0.97 for count in right)
    exact = Ratio(log(2.0), 0.0, 5)
    assert quotient(exact, exact).interval == (1.0, 1.0)


def test_a_figure_that_is_only_told_decides_nothing() -> None:
    assert ClaimedFigure(None).standing == "holds"
    assert ClaimedFigure(None, least=1.0).standing == "can't be said here"
