"""Runs of each end as they would lie in the history, made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.run import Run, SideRecord, Status, Trial
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Sampling, Workload

NGRAM = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}

MACHINE: dict[str, object] = {
    "cpu": "a processor",
    "cores": 2,
    "native_bf16": False,
    "memory_bytes": 8 * 1024**3,
    "gpus": [{"name": "a card", "total_bytes": 80 * 1024**3}],
    "system": "Linux",
}


def side(label: str = "A", speculation: dict[str, Any] | None = None, **more: Any) -> SideRecord:
    settings = EngineSettings.model_validate(
        {
            "target": "owner/target",
            "speculation": speculation or {"method": "off"},
            "knobs": {"max_num_seqs": 8, "dtype": "float32", "enforce_eager": True},
        }
    )
    facts = {"command": "python -m vllm", "runtime_version": "0.32.0", "device": "cpu", "placement": "CPU 0"}
    return SideRecord(label, settings, **{**facts, **more})


def trace(workload: Workload, sizes: list[int | None], **more: Any) -> RequestTrace:
    """Chunks of these sizes, 50 ms apart."""
    chunks = [
        Chunk(200.0 + 50.123456 * i, size, f"字{i}", None if size is None else (7,) * size)
        for i, size in enumerate(sizes)
    ]
    facts = {"finish_reason": "length", "prompt_tokens": 12, "output_tokens": 9, "ended": True}
    return RequestTrace(workload.conversation, 0.25, chunks, **{**facts, **more})


def made(status: Status, *sides: SideRecord, **more: Any) -> Run:
    workload = Workload(prompt="Say 你好", system="Be brief", sampling=Sampling(top_p=0.9, stop=("\n",)))
    facts = {"machine": MACHINE, "preset": "smollm2-ngram"}
    created = "2030-01-02T03:04:05+01:00"
    return Run(f"run-{status}", created, "race", workload, list(sides), status=status, **{**facts, **more})


def done() -> Run:
    run = made("done", side("off"), side("n-gram", NGRAM))
    run.sides[0].trials = [Trial(requests=[trace(run.workload, [1] * 9)])]
    run.sides[1].trials = [Trial(requests=[trace(run.workload, [1, 3, 1, 4], steps=StepArrays((2, 3), (5, 5)))])]
    run.sides[1].trials[0].before = Counters(running=0, waiting=0)
    run.sides[1].trials[0].after = Counters(
        running=0,
        waiting=0,
        drafts=2,
        draft_tokens=10,
        accepted_tokens=5,
        accepted_per_position=(2, 2, 1, 0, 0),
    )
    run.sides[1].samples = [Sample(500.0, Counters(running=1, kv_cache_usage=0.1, drafts=1))]
    return run


def stopped() -> Run:
    run = made("stopped", side("off"), side("n-gram", NGRAM), preset=None)
    problem = Message("stream.stopped", {"detail": ""})
    run.sides[0].trials = [
        Trial(requests=[trace(run.workload, [1, 1], finish_reason=None, output_tokens=None, problem=problem)])
    ]
    run.sides[1].trials = [
        Trial(requests=[trace(run.workload, [], finish_reason=None, output_tokens=None, problem=problem)])
    ]
    return run


def failed() -> Run:
    broken = side("off", command="", runtime_version=None, device=None, placement="")
    broken.problem = Message("failure.unknown", {"code": 1, "log": "engine.log"})
    broken.log_tail = ["the last line"]
    return made("failed", broken, side("n-gram", NGRAM), machine={})


def uncounted() -> Run:
    run = made("done", side("off"), side("n-gram", NGRAM))
    run.sides[0].trials = [Trial(requests=[trace(run.workload, [None, None, None])])]
    run.sides[1].trials = [Trial(requests=[trace(run.workload, [None, None], output_tokens=None)])]
    return run


RUNS: list[Callable[[], Run]] = [done, stopped, failed, uncounted]
