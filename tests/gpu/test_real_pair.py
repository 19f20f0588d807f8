"""A real pair of engines on NVIDIA cards, measured as a user does: speed, energy, placement, and nothing left.

    PLAYGROUND_MODELS=/tmp/models python -m pytest -q tests/gpu -m gpu

The folder holds SmolLM2-135M-Instruct. Takes about five minutes on a machine that starts its first engine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

import psutil
import pytest
import pytest_asyncio
from support.paths import CHILD_PATH
from support.real import descendants, survivors, until

from playground.config import Config
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run, Trial
from playground.domain.record.traces import duration_ms
from playground.domain.spec.case import Side
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Sampling, Workload
from playground.domain.stats.expenses import expense_ratios
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.engine import devices, gpu_load
from playground.runs.host import Host

MODEL = "SmolLM2-135M-Instruct"
# Read here: each test begins with an environment of its own.
MODELS = Path(os.environ.get("PLAYGROUND_MODELS", "/tmp/models"))
PACKAGES = os.environ.get("PYTHONPATH", "")
START_S, MEASURE_S = 330.0, 100.0
# What a card can take, in watts: none takes less when idle, or more under load.
LEAST_W, MOST_W = 10.0, 1500.0


def missing() -> str:
    """What this host lacks for these tests; empty: nothing."""
    if not devices.machine().gpus:
        return "no NVIDIA card"
    if find_spec("vllm") is None:
        return "this Python has no vLLM"
    return "" if (MODELS / MODEL / "config.json").exists() else f"{MODELS / MODEL} is not there"


MISSING = missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(MISSING), reason=f"needs a GPU host: {MISSING}")]


@pytest_asyncio.fixture
async def gpu_host(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    """Afterwards no process is left, and nothing computes on a card that did not before."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (CHILD_PATH, PACKAGES))))
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    cards = [gpu.index for gpu in devices.machine().gpus]
    before = gpu_load.read(cards)
    made = Host(Config(db=folder / "h.db", models=MODELS, state=folder / "state", start_timeout_s=START_S))
    made.open()
    yield made
    started = descendants(psutil.Process().pid)
    await made.close()
    assert not survivors(started, within_s=30)
    after = gpu_load.read(cards)
    assert before is not None
    assert after is not None
    assert after.processes == before.processes
    shutil.rmtree(folder)


async def measured(host: Host) -> Run:
    knobs = Knobs(max_model_len=2048, max_num_seqs=32, enforce_eager=True)
    sides = (
        Side(label="off", engine=EngineSettings(target=MODEL, knobs=knobs)),
        Side(label="n-gram", engine=EngineSettings(target=MODEL, knobs=knobs, speculation=Ngram())),
    )
    plan = Measurement.model_validate(
        {
            "prompts": "chat",
            "profile": {"kind": "concurrency", "concurrency": 16, "requests": 16},
            "max_rounds": 6,
            "target_width": 0.005,
            "budget_s": MEASURE_S,
            "check_outputs": False,
            "price_per_hour": 3,
        }
    )
    sampling = Sampling(max_tokens=192, ignore_eos=True)
    comparison = host.comparison(sides, Workload(prompt="x", sampling=sampling, objective="throughput"), plan)
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished, within_s=START_S + 2 * MEASURE_S)
    return comparison.run


def watts(trial: Trial) -> float:
    lasted_ms = duration_ms(trial.requests)
    assert trial.energy_j is not None, "nobody else may use the cards meanwhile"
    assert lasted_ms
    return trial.energy_j / lasted_ms * 1000


async def test_a_pair_is_measured(gpu_host: Host) -> None:
    run = await measured(gpu_host)
    assert run.status == "done", run.problem
    cards = devices.machine().gpus
    assert run.machine["gpus"]

    # A card of its own for each, where there are two; else both on the only one, in turns.
    assert [side.device for side in run.sides] == ["cuda", "cuda"]
    assert len({side.placement for side in run.sides}) == min(2, len(cards))
    assert not any(side.contended for side in run.sides)
    assert all(side.path is not None and side.path.kv_cache_tokens for side in run.sides)

    rounds = rounds_of(run)
    [verdict] = run_verdicts(run, rounds)
    assert verdict.interval is not None, f"{len(rounds)} rounds in {MEASURE_S:.0f} s"
    for side in run.sides:
        powers = [watts(trial) for trial in side.trials if trial.complete]
        assert all(LEAST_W < power < MOST_W for power in powers)
        busy = [sample.counters for sample in side.samples if sample.counters.running]
        assert busy
        assert all(counters.gpu_power_w and counters.gpu_clock_mhz for counters in busy)
        assert all(counters.gpu_throttle is not None for counters in busy)
        figures = side_figures(side, run.measurement)
        assert figures.energy_per_output_token_j
        assert figures.cost_per_million_output_tokens
        starts = f"{side.ready_after_s:.0f} s" if side.ready_after_s else "-"
        print(
            f"\n{side.label} on {side.placement}, ready after {starts}: "
            f"{figures.output_tokens_per_s:.0f} tokens/s, "
            f"{figures.energy_per_output_token_j:.3f} J/token at {fmean(powers):.0f} W, "
            f"{figures.cost_per_million_output_tokens:.3f} a million tokens at 3 an hour"
        )
    ratios = {expense.figure: expense.ratio for expense in expense_ratios(run)}
    assert len(ratios) == 2
    for name, ratio in ratios.items():
        low, high = ratio.interval
        assert 0 < low <= ratio.value <= high
        print(f"{name}: {ratio.value:.2f} ({low:.2f}-{high:.2f})")
    print(f"speed-up {verdict.speed_up:.2f} ({verdict.interval[0]:.2f}-{verdict.interval[1]:.2f})")
    assert gpu_host.history.get(run.id) == run
