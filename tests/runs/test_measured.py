"""A whole measured run without vLLM: the fake server stands in for the engines, all else is the real thing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from support.fake_server import FakeServer, Reply, Steady
from support.races import SIDES, finished
from support.waiting import until

from playground.domain.errors import InvalidInput
from playground.domain.record.metrics import side_figures
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile, LoadProfile, WavesProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings, Knobs
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Limits, Sampling, Workload
from playground.domain.stats.rounds import ending, order_of, rounds_of, run_verdicts
from playground.i18n import say_message
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.findings import findings
from playground.report.tables import errors
from playground.runs import measured
from playground.runs.comparison import Comparison
from playground.runs.host import Host

pytestmark = pytest.mark.slow

# One round is always made.
ONE_ROUND_S = 0.001
SHORT = Side(label="short", engine=EngineSettings(target="model", knobs=Knobs(max_model_len=64)))


def workload(tokens: int = 6, **more: object) -> Workload:
    return Workload.model_validate({"prompt": "x", "sampling": Sampling(max_tokens=tokens), **more})


def plan(profile: LoadProfile | None = None, **more: object) -> Measurement:
    chosen = profile or ConcurrencyProfile(concurrency=2, requests=4)
    # As narrow as never: the rounds end by their number.
    return Measurement.model_validate({"profile": chosen, "max_rounds": 6, "target_width": 0.005, **more})


async def measured_run(
    host: Host,
    measurement: Measurement,
    sides: tuple[Side, ...] = SIDES,
    asked: Workload | None = None,
) -> Comparison:
    comparison = host.comparison(sides, asked or workload(), measurement)
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished, within_s=60)
    return comparison


async def test_rounds_take_turns(host: Host) -> None:
    run = (await measured_run(host, plan(prompts="chat", target_width=2, max_rounds=12))).run
    assert (run.status, run.problem) == ("done", None)
    assert run.mode == "measured"
    rounds = rounds_of(run)
    assert [each.order for each in rounds] == [("off", "ngram"), ("ngram", "off")] * 3
    for side in run.sides:
        assert [trial.round for trial in side.trials] == list(range(6))
        assert not side.contended
        for trial in side.trials:
            assert trial.complete
            assert len(trial.requests) == 4
            # Counters at rest on both ends, and of this trial's requests only: the warm-up came before.
            assert trial.before is not None
            assert trial.after is not None
            assert trial.before.generation_tokens is not None
            assert trial.after.generation_tokens == trial.before.generation_tokens + 4 * 6
    # Never two at once: each trial begins after the end of the one before.
    spans = sorted(
        (
            trial.started_ms + trial.requests[0].sent_ms,
            trial.started_ms + max(trace.sent_ms + trace.chunks[-1].ms for trace in trial.requests),
        )
        for side in run.sides
        for trial in side.trials
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    # The same prompts in the same order, for every side and round.
    orders = {tuple(trace.conversation for trace in trial.requests) for side in run.sides for trial in side.trials}
    assert len(orders) == 1
    assert len(set(next(iter(orders)))) == 4
    [verdict] = run_verdicts(run, rounds)
    assert verdict.rounds == 6
    assert verdict.interval is not None
    # It may be as wide as it likes here, and that is known after six rounds.
    assert ending(run, rounds, (verdict,)) == "narrow"
    concluded = conclusions(run)
    sentences = [say_message(item.sentence) for item in concluded]
    assert concluded[0].kind == "headline"
    assert "6 rounds of 4 prompts" in sentences[0]
    assert any("narrow" in sentence for sentence in sentences)
    assert host.history.get(run.id) == run
    # Equal cores for every side.
    assert run.sides[0].placement == run.sides[1].placement
    assert len(host.pool.engines) == 2
    document = compare_document(run)
    assert [each["order"][0] for each in document["rounds"]] == ["off", "ngram"] * 3
    assert [request["round"] for request in document["sides"][0]["requests"]] == sorted(list(range(6)) * 4)
    [check] = document["outputs"]
    assert (check["side"], check["baseline"], check["compared"], check["identical"]) == ("ngram", "off", 4, 4)
    [row] = document["verdicts"]
    assert (row["side"], row["baseline"], row["metric"]) == ("ngram", "off", "tpot")


async def test_rounds_end_with_the_budget(host: Host) -> None:
    """With too few rounds there is no verdict, and the reason is said."""
    run = (await measured_run(host, plan(budget_s=ONE_ROUND_S))).run
    rounds = rounds_of(run)
    assert len(rounds) == 1
    [verdict] = run_verdicts(run, rounds)
    assert verdict.interval is None
    assert verdict.needed_rounds == 5
    assert ending(run, rounds, (verdict,)) == "budget"


async def test_warm_up_is_repeated_until_it_settles_and_not_counted(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measured, "WARM_WITHIN", 0.0)
    monkeypatch.setattr(measured, "WARM_UP_PASSES", 3)
    run = (await measured_run(host, plan(budget_s=ONE_ROUND_S))).run
    before = run.sides[0].trials[0].before
    assert before is not None
    # Every pass sends what runs at once: two requests of six tokens.
    assert before.generation_tokens == measured.WARM_UP_PASSES * 2 * 6
    assert side_figures(run.sides[0]).requests == 4


async def test_waves_and_goodput(host: Host) -> None:
    asked = workload(objective="goodput")
    waves = WavesProfile(concurrency=2, requests=4)
    run = (
        await measured_run(host, plan(waves, limits=Limits(ttft_ms=60_000), budget_s=ONE_ROUND_S), asked=asked)
    ).run
    assert run.status == "done"
    for trial in run.sides[0].trials:
        first, second = trial.requests[:2], trial.requests[2:]
        assert min(trace.sent_ms for trace in second) >= max(
            trace.sent_ms + trace.chunks[-1].ms for trace in first
        )
    figures = side_figures(run.sides[0], Measurement(limits=Limits(ttft_ms=60_000)))
    assert figures.goodput_requests_per_s == pytest.approx(figures.requests_per_s)
    assert all(
        value == pytest.approx(value) and value for each in rounds_of(run) for value in each.values.values()
    )


async def test_stop_keeps_the_whole_rounds(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(60), plan(max_rounds=100))
    await host.start(comparison, "a test")

    def in_the_third_round() -> bool:
        return any(trial.requests and not trial.complete for trial in comparison.run.sides[0].trials[2:])

    await until(in_the_third_round, within_s=60)
    comparison.stop()
    await finished(comparison)
    run = comparison.run
    assert (run.status, run.problem) == ("stopped", None)
    rounds = rounds_of(run)
    assert len(rounds) == 2
    last = max((trial for side in run.sides for trial in side.trials), key=lambda trial: trial.started_ms)
    assert not last.complete
    assert ending(run, rounds, run_verdicts(run, rounds)) is None
    assert host.history.get(run.id) == run
    # What a user stops has not failed.
    assert any(trace.problem for trace in last.requests)
    assert not any(errors(side.requests) for side in run.sides)


async def test_stop_in_the_warm_up(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(100_000), plan())
    await host.start(comparison, "a test")
    await until(lambda: comparison.live.phase == "warming_up")
    comparison.stop()
    await finished(comparison)
    assert comparison.run.status == "stopped"
    assert not any(side.trials for side in comparison.run.sides)


async def test_finished_requests_are_saved_while_it_measures(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "SAVE_INTERVAL_S", 0.05)
    comparison = host.comparison(SIDES, workload(40), plan(ConcurrencyProfile(requests=50)))
    await host.start(comparison, "a test")

    def saved() -> int:
        found = host.history.get(comparison.run.id)
        return len(found.sides[0].requests) if found else 0

    await until(lambda: saved() >= 3)
    assert not comparison.run.sides[0].trials[0].complete
    comparison.stop()
    await finished(comparison)


async def test_an_engine_that_dies_ends_the_run(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(40), plan(max_rounds=100))
    await host.start(comparison, "a test")
    await until(lambda: bool(rounds_of(comparison.run)), within_s=60)
    victim = host.pool.engines[1]
    assert victim._process is not None
    victim._process.process.terminate()
    await finished(comparison)
    run = comparison.run
    assert run.status == "failed"
    assert run.problem is not None
    assert run.problem.message_id == "run.side_silent"
    assert sum(side.problem is not None for side in run.sides) == 1
    assert rounds_of(run)
    assert host.history.get(run.id) == run


async def test_stop_while_the_answers_are_compared(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured stands; the check is left out."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(measured.answers, "examine", never)
    comparison = host.comparison(SIDES, workload(), plan(budget_s=ONE_ROUND_S))
    await host.start(comparison, "a test")
    await until(lambda: comparison.live.phase == "checking", within_s=60)
    comparison.stop()
    await finished(comparison)
    assert comparison.run.status == "stopped"
    assert comparison.run.outputs is None
    assert len(rounds_of(comparison.run)) == 1
    assert host.history.get(comparison.run.id) == comparison.run


def test_order_alternates() -> None:
    assert [order_of(number, 3) for number in range(3)] == [[0, 1, 2], [2, 1, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("sides", "asked", "measurement", "message_id"),
    [
        (SIDES, workload(objective="goodput"), plan(), "measurement.goodput_needs_limits"),
        (SIDES, workload(), plan(prompts="no-such-set"), "prompts.no_such_set"),
        ((SIDES[0], SHORT), workload(), plan(prompts=SyntheticPrompts(input_tokens=64)), "measurement.too_long"),
        (SIDES, workload(), plan(prompts="/nowhere/x.jsonl"), "prompts.unreadable"),
        ((SIDES[0], SIDES[0]), workload(), plan(), "settings.same_label"),
    ],
)
async def test_what_cannot_be_measured(
    host: Host,
    sides: tuple[Side, ...],
    asked: Workload,
    measurement: Measurement,
    message_id: str,
) -> None:
    with pytest.raises(InvalidInput) as caught:
        host.comparison(sides, asked, measurement)
    assert caught.value.message_id == message_id
    assert host.history.summaries() == []


async def test_synthetic_prompts_need_a_tokenizer(host: Host) -> None:
    """Known only once the model is there."""
    run = (await measured_run(host, plan(prompts=SyntheticPrompts(input_tokens=8)))).run
    assert run.status == "failed"
    assert run.problem is not None
    assert run.problem.message_id == "prompts.no_tokenizer"


async def test_three_sides_against_the_first(host: Host) -> None:
    third = Side(label="k = 3", engine=EngineSettings(target="model", speculation=Ngram(num_speculative_tokens=3)))
    run = (await measured_run(host, plan(budget_s=ONE_ROUND_S), sides=(*SIDES, third))).run
    assert [each.order for each in rounds_of(run)] == [("off", "ngram", "k = 3")]
    found = run_verdicts(run, rounds_of(run))
    assert [(verdict.side, verdict.baseline, verdict.rounds) for verdict in found] == [
        ("ngram", "off", 1),
        ("k = 3", "off", 1),
    ]
    assert len({side.placement for side in run.sides}) == 1


PROBE_TOKENS = 2


def attached(label: str, server: FakeServer) -> Side:
    return Side(
        label=label, engine=AttachedEndpoint(base_url=f"http://127.0.0.1:{server.port}", model="playground")
    )


class Failing(Steady):
    """Refuses every third request that asks for more than a probe does."""

    count = 0

    async def __call__(self, reply: Reply) -> None:
        self.count += reply.body["max_tokens"] > PROBE_TOKENS
        if self.count % 3 == 2:
            await reply.whole("503 Service Unavailable", "busy")
        else:
            await super().__call__(reply)


async def test_a_side_that_fails_requests_does_not_win(host: Host) -> None:
    async with FakeServer(Steady(rate=100)) as good, FakeServer(Failing(rate=1000)) as bad:
        run = (await measured_run(host, plan(), sides=(attached("good", good), attached("bad", bad)))).run
    assert run.status == "done"
    rounds = rounds_of(run)
    [verdict] = run_verdicts(run, rounds)
    assert ending(run, rounds, (verdict,)) == "rounds"
    assert verdict.verdict == "no clear difference"
    assert verdict.reason is not None
    [found] = [found for found in findings(run) if found.rule == "failed_requests"]
    assert found.side == "bad"
    assert "503" in say_message(found.evidence)


async def test_a_stream_without_end_ends_with_the_budget(host: Host) -> None:
    """It is kept alive by comments: silence alone would never end it."""

    async def pings(reply: Reply) -> None:
        if reply.body["max_tokens"] <= PROBE_TOKENS:
            await Steady(rate=500)(reply)
            return
        await reply.begin()
        while not reply.closed.is_set():
            await reply.block(b": ping\n\n")
            await asyncio.sleep(0.05)

    host.config = replace(host.config, request_timeout_s=1)
    async with FakeServer(pings) as server, FakeServer(Steady(rate=500)) as good:
        sides = (attached("good", good), attached("endless", server))
        run = (await measured_run(host, plan(budget_s=0.5), sides=sides)).run
    assert run.status == "failed"
    assert run.problem is not None
    assert run.problem.message_id == "run.side_silent"
