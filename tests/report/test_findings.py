"""Each rule on both sides of its threshold; what real runs show; all sentences in both languages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.finished_runs import done
from support.measured_run import measured_run
from support.schema import check

from playground import presets
from playground.cli.console import print_run
from playground.config import Config
from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.run import Mode, Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.case import Case, Side
from playground.domain.spec.change import Change
from playground.domain.spec.load_profile import WavesProfile
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings
from playground.domain.spec.workload import ChatMessage
from playground.domain.speculation.theory import SpeculationPoint
from playground.domain.stats.rounds import rounds_of
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.plan import Knob, SweepPlan
from playground.domain.sweep.record import PointRecord, Sweep
from playground.i18n import LOCALES, Locale, say_message
from playground.report.charts.chart import COLOURS
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.findings import Finding, findings, sweep_findings
from playground.report.findings.side_view import SideView
from playground.report.findings.speculation import token_cost
from playground.report.html import html_report
from playground.report.sweep import conclusions_of
from playground.ui.shared.view import painter

# Six rounds' spread of a quiet machine.
WOBBLE = (1.0, 1.01, 0.99, 1.0, 1.005, 0.995)
DRAFT = {"method": "draft_model", "model": "d", "num_speculative_tokens": 4}
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2}
TOKENS = 101


def request(
    tpot_ms: float = 10, ttft_ms: float = 50, sent_ms: float = 0, prompt: int = 20, tokens: int = TOKENS
) -> RequestTrace:
    chunks = [Chunk(ttft_ms, 1, "a"), Chunk(ttft_ms + tpot_ms * (tokens - 1), tokens - 1, "b")]
    asked = (ChatMessage(role="user", content="x"),)
    return RequestTrace(asked, sent_ms, chunks, "length", prompt_tokens=prompt, output_tokens=tokens, ended=True)


IDLE = Counters(running=0, waiting=0, preemptions=0)


def drafting(drafts: int, accepted: Sequence[int]) -> Counters:
    """After one trial; `accepted` at each of k positions."""
    return replace(
        IDLE,
        drafts=drafts,
        draft_tokens=len(accepted) * drafts,
        accepted_tokens=sum(accepted),
        accepted_per_position=tuple(accepted),
    )


def side(
    label: str,
    tpot_ms: Sequence[float],
    ttft_ms: Sequence[float] = (50,) * 6,
    after: Counters = IDLE,
    **settings: Any,
) -> SideRecord:
    """A request a trial, a trial a round."""
    trials = [
        Trial(number, 0, [request(tpot, ttft)], IDLE, after, complete=True)
        for number, (tpot, ttft) in enumerate(zip(tpot_ms, ttft_ms, strict=False))
    ]
    return SideRecord(label, EngineSettings.model_validate({"target": "m"} | settings), trials=trials)


def run_of(*sides: SideRecord, **plan: Any) -> Run:
    run = measured_run(rounds=0, **plan)
    run.sides = list(sides)
    return run


def race_of(run: Run) -> Run:
    """Its first round as if it had been a race."""
    mode: Mode = "race"
    sides = [replace(each, trials=each.trials[:1]) for each in run.sides]
    return replace(run, mode=mode, measurement=None, sides=sides)


def speculating(
    speed_up: float, accepted: Sequence[int], drafts: int, speculation: dict[str, Any] = DRAFT, ttft: float = 1
) -> Run:
    """B speculates, A does not; per trial of 100 decode tokens so many drafts, of which so many were accepted."""
    plain = side("A", [10 * wobble for wobble in WOBBLE])
    own = side(
        "B",
        [10 * wobble / speed_up for wobble in WOBBLE[::-1]],
        [50 * wobble / ttft for wobble in WOBBLE[::-1]],
        drafting(drafts, accepted),
        speculation=speculation,
    )
    return run_of(plain, own)


def rules(run: Run) -> list[str]:
    return [found.rule for found in findings(run)]


def only(run: Run, rule: str) -> Finding:
    [found] = [found for found in findings(run) if found.rule == rule]
    for locale in LOCALES:
        assert all(say_message(sentence, locale) for sentence in found.sentences)
    told = next(record for record in run.sides if record.label == found.side)
    if found.change is not None:
        assert isinstance(told.settings, EngineSettings)
        assert found.change.apply(told.settings) != told.settings
    return found


# Speculation


def test_nothing_stands_out_in_a_quiet_run() -> None:
    assert findings(measured_run()) == []


def test_the_cost_of_a_drafted_token_is_recovered() -> None:
    """What a simulation puts in: half of the steps drafted, a drafted token costs 0.3 of a step."""
    drafts, plain_steps, accepted = 25, 25, (20, 15, 10, 5)
    cost = plain_steps + drafts * (1 + 4 * 0.3)
    run = speculating((drafts + plain_steps + sum(accepted)) / cost, accepted, drafts)
    assert token_cost(SideView(run, run.sides[1], partial(rounds_of, run))) == pytest.approx(0.3)
    assert token_cost(SideView(run, run.sides[0], partial(rounds_of, run))) is None


@pytest.mark.parametrize(("speed_up", "found"), [(0.95, True), (1.0, False), (1.05, False)])
def test_below_break_even(speed_up: float, found: bool) -> None:
    """Every step drafts: 50 of 200 tokens accepted. The interval must lie below 1."""
    run = speculating(speed_up, (20, 15, 10, 5), 50)
    assert ("below_break_even" in rules(run)) is found
    assert "below_break_even" not in rules(race_of(run))


def test_as_many_tokens_as_pay() -> None:
    """A drafted token costs (2 / 0.95 - 1) / 4 = 0.28 steps at 2 tokens a step: of 40, 30, 20 and 10% two pay."""
    found = only(speculating(0.95, (20, 15, 10, 5), 50), "below_break_even")
    assert found.change == Change("speculation.num_speculative_tokens", 2)
    assert found.evidence.params["needed"] == pytest.approx(0.276, abs=0.002)
    hopeless = only(speculating(0.3, (20, 15, 10, 5), 50), "below_break_even")
    assert hopeless.change == Change("speculation", "off")


def test_break_even_needs_a_side_that_differs_in_nothing_else() -> None:
    run = speculating(0.95, (20, 15, 10, 5), 50)
    other = EngineSettings.model_validate({"target": "m", "knobs": {"max_num_seqs": 8}})
    run.sides[0] = replace(run.sides[0], settings=other)
    assert "below_break_even" not in rules(run)
    run = speculating(0.95, (20, 15, 10, 5), 50)
    run.sides[0] = replace(run.sides[0], profile=WavesProfile(concurrency=2, requests=2))
    assert "below_break_even" not in rules(run)


@pytest.mark.parametrize(
    ("speed_up", "drafts", "accepted", "speculation", "found"),
    [
        # 2 tokens a step: 2 / S = 1 + 4 cost, so that a cost of 0.6 lies at S = 0.588.
        (0.58, 50, (20, 15, 10, 5), DRAFT, True),
        (0.6, 50, (20, 15, 10, 5), DRAFT, False),
        (0.58, 50, (20, 15, 10, 5), NGRAM, False),
        # 4 tokens a step at a cost of 0.65: slow, and it pays all the same.
        (1.11, 25, (25, 20, 15, 15), DRAFT, False),
        # Two of some hundred steps draft: whatever made them slow, the drafts did not.
        (0.5, 2, (2, 2, 2, 0), DRAFT, False),
    ],
)
def test_draft_too_slow(
    speed_up: float, drafts: int, accepted: Sequence[int], speculation: dict[str, Any], found: bool
) -> None:
    assert ("draft_too_slow" in rules(speculating(speed_up, accepted, drafts, speculation))) is found


@pytest.mark.parametrize(("ttft", "found"), [(0.9, True), (1.0, False), (1.1, False)])
def test_ttft_worse(ttft: float, found: bool) -> None:
    run = speculating(1.5, (40, 35, 30, 25), 50, ttft=ttft)
    assert ("ttft_worse" in rules(run)) is found
    if found:
        # It pays all the same: nothing to switch off but where the first token counts most.
        assert only(run, "ttft_worse").change is None
        neither = speculating(1.0, (40, 35, 30, 25), 50, ttft=ttft)
        assert only(neither, "ttft_worse").change == Change("speculation", "off")


@pytest.mark.parametrize(
    ("accepted", "rule", "change"),
    [
        ((8, 1, 0, 0), "nothing_accepted", Change("speculation", "off")),
        ((8, 2, 0, 0), "low_acceptance", None),
        ((40, 25, 20, 14), "low_acceptance", None),
    ],
)
def test_acceptance_in_a_race(accepted: Sequence[int], rule: str, change: Change | None) -> None:
    """Of 200 drafted tokens. The counters are right in a contended race too."""
    run = race_of(speculating(1, accepted, 50))
    assert only(run, rule).change == change
    assert len(rules(run)) == 1


def test_acceptance_that_is_good_enough_or_of_too_few_drafts() -> None:
    assert rules(race_of(speculating(1, (40, 25, 20, 15), 50))) == []
    assert "nothing_accepted" in rules(race_of(speculating(1, (2, 0, 0, 0), 25)))
    assert "nothing_accepted" not in rules(race_of(speculating(1, (2, 0, 0, 0), 24)))


def test_a_verdict_goes_before_a_rule_of_thumb() -> None:
    accepted = (40, 25, 20, 14)
    assert "low_acceptance" in rules(speculating(1.0, accepted, 50))
    assert "low_acceptance" not in rules(speculating(1.2, accepted, 50))
    synthetic = {**DRAFT, "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2}
    assert "low_acceptance" not in rules(speculating(1.0, accepted, 50, synthetic))


@pytest.mark.parametrize(
    ("drafts", "accepted", "found"),
    [
        # 100 decode tokens; 16 of them accepted leave 84 steps: 1.19 tokens a step.
        (10, (7, 5, 3, 1), True),
        # 17: 1.205.
        (10, (7, 5, 3, 2), False),
        # As few tokens a step, but every other step drafts: the drafts are bad, rather than rare.
        (41, (7, 5, 3, 1), True),
        (42, (7, 5, 3, 1), False),
    ],
)
def test_low_coverage(drafts: int, accepted: Sequence[int], found: bool) -> None:
    run = speculating(1.05, accepted, drafts, NGRAM)
    assert ("low_coverage" in rules(run)) is found
    assert ("low_coverage" in rules(race_of(run))) is found


def test_a_schedule_that_drafts_nothing_here_is_no_finding() -> None:
    schedule = {
        **NGRAM,
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 1, 4], [2, 8, 0]],
    }
    assert "low_coverage" not in rules(speculating(1.05, (7, 5, 3, 1), 10, schedule))


def test_low_coverage_asks_for_shorter_matches_first() -> None:
    assert only(speculating(1.05, (7, 5, 3, 1), 10, NGRAM), "low_coverage").change is None
    strict = {**NGRAM, "prompt_lookup_min": 5}
    change = only(speculating(1.05, (7, 5, 3, 1), 10, strict), "low_coverage").change
    assert change == Change("speculation.prompt_lookup_min", 2)


def point(k: int, speed_up: float) -> SpeculationPoint:
    interval = (speed_up - 0.05, speed_up + 0.05)
    return SpeculationPoint(k, 1, speed_up, interval, 6, acceptance=(0.5,) * k, coverage=1)


@pytest.mark.parametrize(
    ("points", "best"),
    [
        ([point(3, 1.4), point(5, 1.5), point(8, 1.39)], 5),
        # Intervals that overlap do not tell which is best.
        ([point(3, 1.4), point(5, 1.5), point(8, 1.41)], None),
        # Still growing.
        ([point(3, 1.2), point(5, 1.3), point(8, 1.5)], None),
        ([replace(point(5, 1.5), interval=None), point(8, 1.2)], None),
        ([], None),
    ],
)
def test_k_past_its_best(points: list[SpeculationPoint], best: int | None) -> None:
    found = sweep_findings("B", points)
    expected = [] if best is None else [Change("speculation.num_speculative_tokens", best)]
    assert [each.change for each in found] == expected
    assert all(say_message(part, locale) for each in found for part in each.sentences for locale in LOCALES)


def test_a_sweep_says_that_k_is_past_its_best() -> None:
    runs = [
        (2, speculating(1.5, (33, 25), 42, {**DRAFT, "num_speculative_tokens": 2})),
        (4, speculating(1.2, (30, 22, 10, 5), 33)),
    ]
    sides = tuple(Side(label=one.label, engine=one.settings) for one in runs[-1][1].sides)
    measurement = runs[0][1].measurement
    assert measurement is not None
    made = Case(sides=sides, workload=runs[0][1].workload, measurement=measurement)
    plan = SweepPlan(knobs=(Knob(name="k", values=(2, 4)),))
    points = [PointRecord(number, (k,), run) for number, (k, run) in enumerate(runs)]
    sweep = Sweep("s", "2026-11-29T12:00:00+00:00", plan, made, points, status="done")
    assert "finding.past_best_k_seen" in {
        sentence.message_id for sentence in conclusions_of(SweepAnalysis.of(sweep))
    }
    sweep.points = points[:1]
    assert "finding.past_best_k_seen" not in {
        sentence.message_id for sentence in conclusions_of(SweepAnalysis.of(sweep))
    }


# Room


def loaded(samples: list[Counters], preemptions: int = 0, **knobs: Any) -> Run:
    """One side under a load of 32 at once, with these samples."""
    one = side("A", [10.0] * 6, after=replace(IDLE, preemptions=preemptions), knobs=knobs)
    one.samples = [Sample(100.0 * index, each) for index, each in enumerate(samples)]
    return run_of(one, profile={"kind": "concurrency", "requests": 64, "concurrency": 32})


def sample(running: int, waiting: int, usage: float) -> Counters:
    return Counters(running=running, waiting=waiting, kv_cache_usage=usage)


@pytest.mark.parametrize(
    ("samples", "higher"),
    [
        ([sample(8, 24, 0.3)] * 6, 16),
        ([sample(7, 25, 0.3)] * 6, None),
        ([sample(8, 24, 0.5)] * 6, 16),
        # Nothing to gain: the cache would not hold twice as many.
        ([sample(8, 24, 0.51)] * 6, None),
        # For a moment only.
        ([sample(8, 24, 0.3)] * 2 + [sample(8, 0, 0.3)] * 8, 16),
        ([sample(8, 24, 0.3)] * 2 + [sample(8, 0, 0.3)] * 9, None),
        ([sample(8, 24, 0.3)] * 4, None),
    ],
)
def test_batch_limit(samples: list[Counters], higher: int | None) -> None:
    run = loaded(samples, max_num_seqs=8)
    if higher is None:
        assert "batch_limit" not in rules(run)
    else:
        assert only(run, "batch_limit").change == Change("knobs.max_num_seqs", higher)


def test_the_batch_grows_no_further_than_the_load() -> None:
    """Where the engine's default holds, the limit is what ran at most."""
    run = loaded([sample(24, 8, 0.3)] * 6)
    assert only(run, "batch_limit").change == Change("knobs.max_num_seqs", 32)


@pytest.mark.parametrize(
    ("samples", "preemptions", "fit"),
    [
        ([sample(10, 20, 0.97), sample(12, 20, 0.99), sample(11, 9, 0.96)], 3, 11),
        ([sample(10, 20, 0.95)] * 2, 0, 10),
        # Full, but nobody waits; or waiting with room.
        ([sample(10, 0, 0.99)] * 2, 0, None),
        ([sample(10, 20, 0.94)] * 2, 0, None),
    ],
)
def test_kv_cache_full(samples: list[Counters], preemptions: int, fit: int | None) -> None:
    run = loaded(samples, preemptions, max_num_seqs=64)
    if fit is None:
        assert rules(run) == []
    else:
        assert only(run, "kv_full").change == Change("knobs.max_num_seqs", fit)


def test_preemptions_between_two_samples() -> None:
    """One is enough; how many fit at once is unknown."""
    found = only(loaded([sample(10, 0, 0.5)], preemptions=1), "kv_full")
    assert found.change is None
    # In six trials.
    assert found.evidence.params["preempted"] == 6


@pytest.mark.parametrize(
    ("short", "longest", "found"),
    [
        # A request of so many tokens in each trial, each with 20 of prompt, beside short ones of 100 in all.
        (6, 580, True),
        (6, 579, False),
        # Two thirds of all tokens, but no other kind.
        (2, 380, True),
        (2, 379, False),
    ],
)
def test_long_sequences_take_the_cache(short: int, longest: int, found: bool) -> None:
    run = loaded([sample(10, 20, 0.97)] * 3)
    for trial in run.sides[0].trials:
        trial.requests = [*(request(tokens=80) for _ in range(short)), request(tokens=longest)]
    assert ("long_takes_cache" in rules(run)) is found
    if found:
        assert only(run, "long_takes_cache").change is None
        run.sides[0].settings = EngineSettings.model_validate(
            {"target": "m", "knobs": {"enable_prefix_caching": False}}
        )
        assert only(run, "long_takes_cache").change == Change("knobs.enable_prefix_caching", value=True)


def mixed(beside_ms: float, prompt: int, kind: str = "waves") -> Run:
    """In each trial two short requests beside a long one, two after it."""
    own = side("A", [10.0] * 6)
    for trial in own.trials:
        trial.requests = [
            request(ttft_ms=50, prompt=prompt, tokens=1000),
            *(request(ttft_ms=beside_ms, sent_ms=ms, tokens=20) for ms in (10, 20)),
            *(request(ttft_ms=50, sent_ms=ms, tokens=20) for ms in (20000, 20010)),
        ]
    ramp = {"kind": "ramp", "first": 1, "last": 3, "requests": 5}
    return run_of(own, profile=ramp if kind == "ramp" else {"kind": kind, "concurrency": 3, "requests": 5})


@pytest.mark.parametrize(("beside_ms", "found"), [(101, True), (99, False)])
def test_short_requests_starved(beside_ms: float, found: bool) -> None:
    assert ("short_starved" in rules(mixed(beside_ms, 20))) is found
    assert "short_starved" not in rules(mixed(beside_ms, 20, kind="ramp"))


@pytest.mark.parametrize(("prompt", "change"), [(512, None), (513, 512)])
def test_long_prompts_are_cut_into_pieces(prompt: int, change: int | None) -> None:
    found = only(mixed(300, prompt), "short_starved")
    assert found.change == (Change("knobs.long_prefill_token_threshold", change) if change else None)


# The measurement


@pytest.mark.parametrize(("broken", "found"), [(True, True), (False, False)])
def test_failed_requests(broken: bool, found: bool) -> None:
    run = measured_run(broken=broken)
    assert ("failed_requests" in rules(run)) is found
    if found:
        [told] = [each for each in findings(run) if each.rule == "failed_requests"]
        assert told.side == "quick"
        assert told.evidence.params["cause"] == Message("stream.cut")


@pytest.mark.parametrize(
    ("pieces", "tokens", "attached", "expected"),
    [(1, 16, True, True), (2, 16, True, False), (1, 15, True, False), (1, 16, False, False)],
)
def test_an_answer_that_is_not_streamed(pieces: int, tokens: int, attached: bool, expected: bool) -> None:
    run = measured_run()
    record = run.sides[0]
    if attached:
        record.settings = AttachedEndpoint(base_url="http://127.0.0.1:1", model="m")
    for trial in record.trials:
        chunks = [Chunk(50.0 + number, None, "a") for number in range(pieces)]
        trial.requests = [replace(trace, chunks=chunks, output_tokens=tokens) for trace in trial.requests]
    assert ("not_streamed" in rules(run)) is expected


@pytest.mark.parametrize(
    ("tpot_ms", "found"),
    [
        ((12.6, 10, 10, 10, 10, 10), True),
        ((12.4, 10, 10, 10, 10, 10), False),
        # As slow again later: noise.
        ((12.6, 10, 10, 13, 10, 10), False),
        ((12.6, 10, 10), False),
    ],
)
def test_cold_start(tpot_ms: Sequence[float], found: bool) -> None:
    assert ("cold_start" in rules(run_of(side("A", tpot_ms)))) is found


def test_cold_start_by_throughput() -> None:
    run = run_of(side("A", (12.6, 10, 10, 10, 10, 10), ttft_ms=(0.1,) * 6))
    run.workload = run.workload.model_copy(update={"objective": "throughput"})
    assert only(run, "cold_start").evidence.params["times"] == pytest.approx(1.26, rel=0.01)


@pytest.mark.parametrize(
    ("a", "b", "rule", "about"),
    [
        ((10, 9.6, 9.2, 8.8, 8.4, 8), (5, 4.85, 4.7, 4.55, 4.4, 4.25), "drifts_up", "A"),
        ((8, 8.4, 8.8, 9.2, 9.6, 10), (4, 4.19, 4.4, 4.61, 4.8, 5), "drifts_down", "B"),
        ((10, 10.1, 9.9, 10, 10.1, 9.9), (8, 8.8, 9.6, 10.4, 11.2, 12), "ratio_moves", "B"),
        ((10, 10.1, 9.9, 10, 10.1, 9.9), (5, 5.1, 4.9, 5, 4.9, 5.1), None, ""),
    ],
)
def test_drift(a: Sequence[float], b: Sequence[float], rule: str | None, about: str) -> None:
    run = run_of(side("A", a), side("B", b))
    found = [(each.rule, each.side) for each in findings(run) if each.rule != "cold_start"]
    assert found == ([(rule, about)] if rule else [])
    if rule:
        only(run, rule)
        # Said once: in its sentence while the run goes on, among the findings when it has ended.
        assert f"verdict.{rule}" not in {item.sentence.message_id for item in conclusions(run)}
        going_on = replace(run, status="running")
        assert f"verdict.{rule}" in {item.sentence.message_id for item in conclusions(going_on)}


# Real runs


def test_a_recorded_loss() -> None:
    """A 7B-shaped target with a 0.5B-shaped draft on one H200: 0.75x. Three of five drafted tokens are accepted at
    best, and each costs 0.73 of a step."""
    path = presets.FOLDER / "recordings" / "qwen2.5-7b-shaped.measured.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    sides = []
    for recorded in document["sides"]:
        label, figures = recorded["label"], recorded["figures"]
        values = [each["values"][label] for each in document["rounds"]]
        tokens = figures["output_tokens"] // len(values)
        drafts = round(tokens / figures["tokens_per_step"])
        rates = figures["acceptance_rate_per_position"]
        after = drafting(drafts, [round(rate * drafts) for rate in rates]) if rates else IDLE
        own = side(label, values, [50] * len(values), after, **recorded["settings"])
        for trial, tpot in zip(own.trials, values, strict=True):
            trial.requests = [request(tpot, tokens=tokens)]
        sides.append(own)
    run = run_of(*sides)
    assert [each.rule for each in findings(run)] == ["below_break_even", "draft_too_slow"]
    assert only(run, "below_break_even").change == Change("speculation.num_speculative_tokens", 2)
    assert only(run, "draft_too_slow").evidence.params["cost"] == pytest.approx(0.73, abs=0.02)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        # 1.66x at 52% acceptance and 35% coverage: a drafted token costs 0.08 of a step.
        ("ngram, one H200", []),
        # The model as its own draft: everything is accepted, and nothing gained.
        ("draft = target, two cores", ["draft_too_slow", "ttft_worse"]),
    ],
)
def test_recorded_runs(name: str, found: list[str]) -> None:
    """Each request's first and last chunk, and the counters of each trial."""
    recorded = json.loads(Path(__file__).with_name("recorded_runs.json").read_text(encoding="utf-8"))[name]
    sides = []
    for one in recorded["sides"]:
        own = SideRecord(one["label"], EngineSettings.model_validate(one["settings"]))
        for number, trial in enumerate(one["trials"]):
            before, after = Counters(**trial["before"]), Counters(**trial["after"])
            requests = [recorded_request(*each) for each in trial["requests"]]
            own.trials.append(Trial(number, 0, requests, before, after, complete=True))
        sides.append(own)
    run = run_of(*sides, **recorded["measurement"])
    assert rules(run) == found
    for rule in found:
        only(run, rule)


def recorded_request(
    sent_ms: float, first_ms: float, first: int, last_ms: float, tokens: int, prompt: int
) -> RequestTrace:
    chunks = [Chunk(first_ms, first, ""), Chunk(last_ms, tokens - first, "")]
    return replace(request(sent_ms=sent_ms, prompt=prompt, tokens=tokens), chunks=chunks)


# Where they are shown


def everything() -> Run:
    """Several findings at once, with characters that HTML must not take for its own."""
    run = speculating(0.5, (20, 15, 10, 5), 50)
    run.sides[1].label = "<b>B</b>"
    return run


def test_the_document_has_them() -> None:
    for run in (everything(), race_of(everything()), done()):
        told = check("compare", compare_document(run))["findings"]
        assert [each["rule"] for each in told] == rules(run)
    first = check("compare", compare_document(everything()))["findings"][0]
    assert first["side"] == "<b>B</b>"
    assert first["change"] == {"key": "speculation", "value": "off"}


@pytest.mark.parametrize("locale", LOCALES)
def test_the_page_shows_them_when_the_run_has_ended(locale: Locale, config: Config) -> None:
    run = everything()
    going_on = painter(config, replace(run, status="running"), locale).paint(whole=True)
    assert json.loads(going_on)["findings"] is None
    shown = json.loads(painter(config, run, locale).paint())["findings"]["items"]
    assert [item["sentences"][2] for item in shown] == [say_message(f.remedy, locale) for f in findings(run)]
    assert {item["colour"] for item in shown} == {COLOURS[1]}
    assert shown[0]["change"] == "speculation = off"


@pytest.mark.parametrize("shown", [everything, lambda: race_of(speculating(1, (8, 0, 0, 0), 50))])
def test_people_read_them(shown: Callable[[], Run], capsys: pytest.CaptureFixture[str]) -> None:
    run = shown()
    found = findings(run)
    assert found
    print_run(run)
    printed = capsys.readouterr().out
    page = html_report(run, "zh-CN")
    for each in found:
        assert say_message(each.remedy) in printed
        assert say_message(each.remedy, "zh-CN") in page
    assert "<b>B</b>" not in page
