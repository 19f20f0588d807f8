"""Runs as a history holds them, made up, and the calls that save them."""

from __future__ import annotations

from playground.domain.message import Message
from playground.domain.record.counters import Counters, Sample
from playground.domain.record.engine_path import EnginePath
from playground.domain.record.evidence import AccuracyEvidence, OutputEvidence, Repeats, Task, TopLogprobs
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.load_profile import RateProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel, Ngram
from playground.domain.spec.workload import ChatMessage, Limits, Sampling, Workload
from playground.store import History
from support.paths import ROOT

# A database of the first released shape.
OLDEST = (ROOT / "tests" / "store" / "before" / "oldest.sql").read_text(encoding="utf-8")


def run(run_id: str = "r1", *, prompt: str = "hello", created_at: str = "", **fields: object) -> Run:
    return Run(
        id=run_id,
        created_at=created_at or "2026-11-29T18:00:00+00:00",
        mode="race",
        workload=Workload(prompt=prompt),
        sides=[
            SideRecord("A", EngineSettings(target="owner/target")),
            SideRecord("B", EngineSettings(target="owner/target", speculation=DraftModel(model="owner/draft_1"))),
        ],
        **fields,
    )


def saved(history: History, made: Run) -> Run:
    """Through the calls of a real run; a run that is over is finished."""
    history.begin(made)
    for position, side in enumerate(made.sides):
        for trial in side.trials:
            history.save_trial(made.id, position, trial, dict(enumerate(trial.requests)))
    if made.status != "running":
        history.finish(made)
    return made


def full_run() -> Run:
    conversation = (
        ChatMessage(role="system", content="Sei kurz."),
        ChatMessage(role="user", content='汉字 🙂 "x" \\ %_'),
    )
    whole = RequestTrace(
        conversation,
        sent_ms=0.25,
        chunks=[Chunk(100.125, 1, "汉", (7,)), Chunk(150.5, 3, "字 🙂\n", (8, 9, 10)), Chunk(151, 1, "", (11,))],
        finish_reason="stop",
        prompt_tokens=12,
        output_tokens=5,
        steps=StepArrays((2, 0), (5, 5)),
        ended=True,
    )
    cut = RequestTrace(
        conversation,
        sent_ms=0.5,
        chunks=[Chunk(90.0, None, "no ids")],
        problem=Message("stream.cut", {"detail": "", "seconds": 1.5, "count": 2, "flag": True, "none": None}),
        ended=True,
    )
    going = RequestTrace(conversation, chunks=[Chunk(9.0, 2, "ab")])
    counters = Counters(1, 0, 0.5, 10, 50, 20, (10, 6, 4, 0, 0), 96, 3)
    first = SideRecord(
        "A",
        EngineSettings(
            runtime="new",
            target="owner/target",
            speculation=Ngram(num_speculative_tokens=3, num_speculative_tokens_per_batch_size=((1, 4, 3),)),
            knobs=Knobs(enforce_eager=False, gpu_memory_utilization=0.5, seed=0),
            trust_remote_code=True,
            extra_flags=("--x", "a b"),
        ),
        command="X=1 python -m vllm",
        runtime_version="0.32.0",
        device="cpu",
        placement="CPU 0",
        contended=False,
        trials=[
            Trial(requests=[whole, going], before=Counters(running=0, waiting=0), after=counters, complete=True),
            Trial(round=1, started_ms=2000.5, requests=[going]),
        ],
        samples=[Sample(0.5, Counters(running=1)), Sample(500.25, counters)],
        path=EnginePath(model_runner="V2", async_scheduling=False, cudagraph_sizes=(1, 2), kernels=("A",)),
    )
    second = SideRecord(
        "B",
        EngineSettings(target="t"),
        trials=[Trial(requests=[cut])],
        problem=Message("failure.killed", {"code": 137, "log": "/s/e.log"}),
        log_tail=["first", "last 汉"],
    )
    sampling = Sampling(
        max_tokens=5, temperature=0.7, top_p=0.9, top_k=4, seed=None, stop=("a", "b"), ignore_eos=True
    )
    return Run(
        id="r1",
        created_at="2026-11-29T18:00:00+08:00",
        mode="measured",
        measurement=Measurement(
            prompts=SyntheticPrompts(input_tokens=64),
            profile=RateProfile(requests_per_s=2.5, duration_s=9),
            limits=Limits(ttft_ms=200),
        ),
        workload=Workload(prompt="汉字", system="s", turns=conversation, sampling=sampling, objective="ttft"),
        sides=[first, second],
        preset="smollm2-ngram",
        status="failed",
        machine={"cpu": "x", "cores": 2, "gpus": [{"name": "H200"}], "native_bf16": False},
        seed=7,
        outputs=OutputEvidence((TopLogprobs(1, 0, 3, {5: -0.5, 6: -1.0}),), (Repeats(0, ((1, 2), None)),)),
        accuracy=AccuracyEvidence((Task("汉字?", ("字", "b")), Task("q", ("a",))), (("字", None), ("", " x\n"))),
        problem=Message("run.side_failed", {"side": "B", "cause": Message("failure.killed", {"code": 137})}),
    )


def answered(run_id: str, answer: str, **fields: object) -> Run:
    answering = run(run_id, status="done", **fields)
    trace = RequestTrace(answering.workload.conversation, chunks=[Chunk(1.0, 1, answer)], ended=True)
    answering.sides[0].trials = [Trial(requests=[trace])]
    return answering
