"""A measured run as it would lie in the history, made up: two sides of known speed."""

from __future__ import annotations

from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import ChatMessage, Workload

TOKENS = 11
GAP_MS = {"plain": (20.0, 20.2, 19.9, 20.1, 20.0, 19.8), "quick": (10.0, 10.2, 9.9, 10.1, 10.1, 9.8)}
TURN_MS = 1000.0


def measured_run(rounds: int = 6, broken: bool = False, **more: object) -> Run:
    """Each trial sends two requests of TOKENS tokens, whose gaps are GAP_MS; turns last TURN_MS."""
    plan = {"profile": {"kind": "concurrency", "requests": 2}, "prompts": "chat", "max_rounds": 6, **more}
    sides = [
        SideRecord("plain", EngineSettings(target="m")),
        SideRecord("quick", EngineSettings(target="m", speculation=Ngram())),
    ]
    for number in range(rounds):
        for turn, side in enumerate(sides if number % 2 == 0 else sides[::-1]):
            serve(side, number, (2 * number + turn) * TURN_MS, GAP_MS[side.label][number])
    if broken:
        sides[1].trials[-1].requests[-1].problem = Message("stream.cut")
    return Run(
        id="20261129-120000-abcd",
        created_at="2026-11-29T12:00:00+00:00",
        mode="measured",
        workload=Workload(prompt="x"),
        measurement=Measurement.model_validate(plan),
        sides=sides,
        status="done",
    )


def serve(
    side: SideRecord,
    number: int,
    at_ms: float,
    gap_ms: float,
    rates: tuple[float, ...] = (0.5,),
    drafts: int = 8,
    at_once: int = 1,
) -> None:
    """One trial: two requests of TOKENS tokens for each of `at_once` places. The engine made so many drafts in it,
    of which a share by position was accepted."""
    requests = [
        RequestTrace(
            (ChatMessage(role="user", content="hello <b>you</b>"),),
            sent_ms=(30.0 + gap_ms * TOKENS if at_once > 1 else 400.0) * index,
            chunks=[Chunk(30.0 + gap_ms * j, 1, f"w{j} ", (j,)) for j in range(TOKENS)],
            prompt_tokens=5,
            output_tokens=TOKENS,
            finish_reason="length",
            ended=True,
        )
        for index in (0, 1)
        for _ in range(at_once)
    ]
    made = (rates, drafts) if side.settings.speculates else None
    before, after = _counters(number, made), _counters(number + 1, made)
    side.trials.append(Trial(number, at_ms, requests, before, after, complete=True))
    for ms in (100.0, 600.0):
        side.samples.append(Sample(at_ms + ms, _counters(number + ms / TURN_MS, made, running=1)))


def _counters(done: float, made: tuple[tuple[float, ...], int] | None, running: int = 0) -> Counters:
    rates, each = made or ((), 0)
    drafts = round(each * done)
    accepted = tuple(round(drafts * rate) for rate in rates)
    return Counters(
        running=running,
        waiting=0,
        kv_cache_usage=0.25 * running,
        drafts=drafts if made else None,
        draft_tokens=drafts * len(rates) if made else None,
        accepted_tokens=sum(accepted) if made else None,
        accepted_per_position=accepted if made else None,
        generation_tokens=round(100 * done),
        preemptions=0,
        prefix_cache_queries=round(100 * done),
        prefix_cache_hits=round(50 * done),
    )
