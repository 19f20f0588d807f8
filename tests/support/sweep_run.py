"""A sweep as it would lie in the history, made up: two sides, the second of which drafts, by a simple law."""

from __future__ import annotations

from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.case import Case, Side
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Sampling, Workload
from playground.domain.speculation.theory import geometric_rates, tokens_per_step
from playground.domain.sweep.knob_text import parsed_knob
from playground.domain.sweep.plan import Point, SweepPlan, points_of
from playground.domain.sweep.record import PointRecord, Sweep
from playground.store import History
from support.measured_run import TOKENS, TURN_MS, serve

ROUNDS = 6
# The law: what one step takes at concurrency 1, how it grows with each further request, what drafting adds.
STEP_MS, PER_REQUEST, PER_DRAFT = 20.0, 0.03, 0.12
ACCEPTED = 0.8
NO_MEMORY = Message("failure.cpu_memory", {"stage": Message("stage.loading_weights")})
OUT_OF_MEMORY = Message("run.side_failed", {"side": "quick", "cause": NO_MEMORY})


def base_case(**workload: object) -> Case:
    return Case(
        sides=(
            Side(label="plain", engine=EngineSettings(target="m")),
            Side(label="quick", engine=EngineSettings(target="m", speculation=Ngram())),
        ),
        workload=Workload.model_validate({"prompt": "x", "sampling": Sampling(max_tokens=TOKENS), **workload}),
        measurement=Measurement.model_validate(
            {"profile": {"kind": "concurrency", "requests": 2}, "prompts": "chat", "max_rounds": ROUNDS}
        ),
    )


def made_sweep(
    *knobs: str,
    case: Case | None = None,
    failed: tuple[int, ...] = (),
    left: tuple[int, ...] = (),
    rounds: int = ROUNDS,
    sweep_id: str = "20261130-090000-5eed",
) -> Sweep:
    """`knobs` as they are typed. Points by number: those that `failed` ran out of memory, those `left` have yet
    to be measured."""
    plan, case = SweepPlan(knobs=tuple(parsed_knob(text) for text in knobs)), case or base_case()
    points = [
        PointRecord(
            point.number,
            point.values,
            None if point.number in left else _run(point, sweep_id, rounds, broken=point.number in failed),
        )
        for point in points_of(plan, case)
    ]
    status = "stopped" if left else "done"
    return Sweep(sweep_id, "2026-11-30T09:00:00+00:00", plan, case, points, "smollm2-ngram", status)


def save(history: History, sweep: Sweep) -> None:
    """As a sweep that ended would have left it."""
    for point in sweep.points:
        if point.run is not None:
            history.begin(point.run)
            history.finish(point.run)
    history.begin_sweep(sweep)
    history.finish_sweep(sweep)


def _run(point: Point, sweep_id: str, rounds: int, broken: bool) -> Run:
    case = point.case
    sides = [SideRecord(side.label, side.engine, device="cpu", ready_after_s=20.0) for side in case.sides]
    for number in range(0 if broken else rounds):
        for turn, side in enumerate(sides if number % 2 == 0 else sides[::-1]):
            _serve(side, number, (2 * number + turn) * TURN_MS, case.measurement.profile.peak)
    return Run(
        id=f"{sweep_id[:-4]}{point.number:04x}",
        created_at="2026-11-30T09:00:00+00:00",
        mode="measured",
        workload=case.workload,
        measurement=case.measurement,
        sides=sides,
        sweep_id=sweep_id,
        status="failed" if broken else "done",
        problem=OUT_OF_MEMORY if broken else None,
    )


def _serve(side: SideRecord, number: int, at_ms: float, at_once: int) -> None:
    k = side.settings.speculation.model_dump().get("num_speculative_tokens", 0)
    rates = geometric_rates(ACCEPTED, k)
    # The more requests share a step, the less of it is waiting for memory, and the more a draft token costs.
    gap = STEP_MS * (1 + PER_REQUEST * at_once + PER_DRAFT * at_once * k / 2) / tokens_per_step(rates)
    noise = 1 + 0.01 * ((7 * number + 3 * k) % 5 - 2)
    # One token of an answer comes with the first chunk, without a step of decoding.
    drafts = round(2 * at_once * (TOKENS - 1) / tokens_per_step(rates))
    serve(side, number, at_ms, gap * noise, rates, drafts, at_once)
