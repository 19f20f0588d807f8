"""What a start's log tells: lines of real starts, vLLM 0.32 on a CPU and 0.26 on a GPU."""

from __future__ import annotations

import pytest
from support.paths import ROOT

from playground.engine.failures.stages import MARKS, STAGE_NAMES, STAGES, StageSeconds, stage_of
from playground.i18n import say

CPU = (
    ("(APIServer pid=1) INFO [api_utils.py:286] non-default args: {'host': '127.0.0.1'}", "configuring"),
    ("(APIServer pid=1) INFO [model.py:733] Resolved architecture: LlamaForCausalLM", "configuring"),
    ("(APIServer pid=1) WARNING [vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs", None),
    (
        "(EngineCore pid=2) INFO [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "kernel_config=KernelConfig(enable_flashinfer_autotune=False), mode': <CompilationMode.NONE: 0>",
        "engine_core",
    ),
    ("(Worker pid=3) INFO [cpu_model_runner.py:68] Starting to load model m...", "loading_weights"),
    ("(Worker pid=3) INFO [cpu_model_runner.py:75] Loading drafter model...", "loading_draft"),
    (
        "(Worker pid=3) INFO [cpu_worker.py:260] Explicitly set (1.0/9.96) GiB for KV cache on node 0.",
        "allocating_kv",
    ),
    ("(APIServer pid=1) INFO [entry.py:140] Starting vLLM server on unix:/s", "serving"),
)
GPU = (
    ("Loading safetensors checkpoint shards:   0% Completed | 0/1 [00:00<?, ?it/s]", "loading_weights"),
    ("(EngineCore pid=2) INFO [gpu_worker.py:560] Available KV cache memory: 61.95 GiB", "allocating_kv"),
    (
        "(EngineCore pid=2) - INFO - autotuner.py:651 - flashinfer.jit: [Autotuner]: Autotuning process starts",
        "warming_up",
    ),
    ("(APIServer pid=1) INFO [api_server.py:677] Starting vLLM server on unix:/s", "serving"),
)


@pytest.mark.parametrize(("line", "stage"), [*CPU, *GPU])
def test_a_line_and_its_stage(line: str, stage: str | None) -> None:
    assert stage_of(line) == stage


@pytest.mark.parametrize("log", [CPU, GPU])
def test_stages_come_in_order(log: tuple[tuple[str, str | None], ...]) -> None:
    order = [STAGE_NAMES.index(stage) for _, stage in log if stage]
    assert order == sorted(order)


# Lines of real starts, each after the seconds since the engine's process began.
LOGS = {
    "cpu-eager": {
        **{"importing": 27, "configuring": 0, "core_importing": 30, "engine_core": 22, "loading_weights": 5},
        **{"allocating_kv": 3, "serving": 8},
    },
    # A 1.5B shape with a draft, the first engine of an H200: kernels of the sampler are compiled in the trial run.
    "gpu-cold": {
        **{"importing": 20, "configuring": 22, "core_importing": 24, "engine_core": 2, "loading_weights": 2},
        **{"loading_draft": 1, "profiling": 101.74, "compiling": 39.26, "allocating_kv": 1, "warming_up": 0},
        **{"capturing": 9, "serving": 1},
    },
}


@pytest.mark.parametrize(("name", "stages"), LOGS.items())
def test_where_the_seconds_went(name: str, stages: dict[str, float]) -> None:
    lines = (ROOT / "tests" / "cases" / "starts" / f"{name}.log").read_text(encoding="utf-8").splitlines()
    seconds = StageSeconds(100.0)
    for line in lines:
        at, _, text = line.partition(" ")
        seconds.read(text, 100.0 + float(at))
    took = {each.stage: each.seconds for each in seconds.ended(100.0 + float(at))}
    assert took == pytest.approx(stages)
    assert sum(took.values()) == pytest.approx(float(at))


@pytest.mark.parametrize("name", [name for name, _ in MARKS])
def test_finer_stages_have_names(name: str) -> None:
    assert say(f"stage.{name}")


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_every_stage_has_a_name(name: str) -> None:
    assert say(f"stage.{name}")
    assert name in ("waiting", "ready") or name in dict(STAGES)
