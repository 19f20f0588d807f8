"""Benchmarks still run: on stand-in engines, as short as they go. What they print of them says nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from support.real import embedded_model

from benchmarks import (
    agreement,
    common,
    dummy_model,
    explain,
    fidelity,
    history,
    idle_engine,
    intrusion,
    memory,
    page,
    recording,
    search,
    start,
    surfaces,
    trials,
    visitors,
)
from benchmarks.attacks.websites import WEBSITES
from benchmarks.faults.starts import STARTS
from playground.config import Config
from playground.runs import measured

pytestmark = pytest.mark.slow


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "WARM_UP_PASSES", 1)
    for name, value in common.stand_in(tmp_path, rate=1000).items():
        monkeypatch.setenv(name, value)


def test_fidelity(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(fidelity, "STREAMS", (1, 2, 3))
    monkeypatch.setattr(fidelity, "ANSWERS", 1)
    monkeypatch.setattr(fidelity, "TOKENS", 64)
    fidelity.main(1, Path("unused"), with_vllm=False)
    printed = capsys.readouterr().out
    assert printed.count("\nours ") == len(fidelity.STREAMS) * len(fidelity.PER_CHUNK)
    assert "ours, largest TPOT error" in printed


@pytest.mark.foreign
def test_agreement(
    stand_in: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """vLLM's client is real here: it loads the kernels that this processor has."""
    folder = Config.from_environment().models / "SmolLM2-135M-Instruct"
    for file in asyncio.run(embedded_model()).iterdir():
        (folder / file.name).unlink(missing_ok=True)
        (folder / file.name).symlink_to(file)
    monkeypatch.setattr(agreement, "LOADS", {1: 1})
    monkeypatch.setattr(agreement, "TOKENS", 8)
    asyncio.run(agreement.main(rounds=1))
    printed = capsys.readouterr().out
    assert "1 streams, 1 alternations" in printed
    assert "vllm " in printed


def test_a_child_that_dies_by_a_signal_is_told() -> None:
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    with pytest.raises(SystemExit, match="SIGILL"):
        common._output([sys.executable, "-c", dies])
    with pytest.raises(SystemExit, match="exit code 3"):
        common._output([sys.executable, "-c", "raise SystemExit(3)"])


async def test_start(stand_in: None, capsys: pytest.CaptureFixture[str]) -> None:
    await start.main(pairs=1)
    assert "median ratio" in capsys.readouterr().out
    await start.main(pairs=0, preset_name="smollm2-ngram")
    assert "at once / alone, the second time" in capsys.readouterr().out


async def test_recording_and_idle_engines(
    stand_in: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "IDLE_ROUNDS", 1)
    monkeypatch.setattr(idle_engine, "ALONE", 1)
    monkeypatch.setattr(sys, "argv", ["recording", str(tmp_path / "records"), "smollm2-ngram", "--idle"])
    await recording.main()
    assert "beside idle engines / beside frozen ones" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "records").iterdir()}
    assert names == {"smollm2-ngram.race.json", "smollm2-ngram.measured.json"}


def test_search() -> None:
    surface = surfaces.built()[0]
    share, gap = search.searched(surface, noise=0, seed=0)
    assert 0 < share < 1
    assert 0 <= gap < 1
    assert len(surfaces.recorded().logs) > 1


async def test_a_search_on_engines(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid's own preset is long: what it sweeps over is one point here."""
    preset = search.presets.load(str(search.PRESET))
    assert preset.sweep is not None
    [knob, *_] = preset.sweep.knobs
    plan = preset.sweep.model_copy(update={"knobs": (knob.model_copy(update={"values": knob.values[:1]}),)})
    monkeypatch.setattr(search.presets, "load", lambda _: preset.model_copy(update={"sweep": plan}))
    sweep, seconds = await search.swept(search=False)
    assert len(sweep.points) == 1
    assert seconds > 0


@pytest.mark.browser
async def test_page(capsys: pytest.CaptureFixture[str]) -> None:
    await page.main(rate=500, tokens=60)
    assert "120 tokens painted in 2 panes" in capsys.readouterr().out


def test_a_model_without_weights(tmp_path: Path) -> None:
    model = asyncio.run(embedded_model())
    dummy_model.make("qwen2.5-0.5b", model, tmp_path / "dummy")
    assert {"config.json", "tokenizer.json"} <= {path.name for path in (tmp_path / "dummy").iterdir()}


def test_a_long_log(capsys: pytest.CaptureFixture[str]) -> None:
    explain.main(0.2)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in printed[1:]] == ["gpu_memory", "gpu_memory", "other", "gpu_memory"]


def test_history(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(history, "REPEATS", 1)
    history.main(runs=60, requests=1)
    printed = capsys.readouterr().out
    assert "search index built" in printed
    assert "text without a match" in printed


async def test_visitors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(visitors, "OTHERS", 2)
    await visitors.main(visitors=2, seconds=4)
    printed = capsys.readouterr().out
    assert "live: 2 of 2" in printed
    assert "stop heard" in printed


@pytest.mark.parametrize("trial", [WEBSITES[0], STARTS[-1]], ids=lambda trial: trial.name)
async def test_attacks_and_faults(trial: trials.Trial, capsys: pytest.CaptureFixture[str]) -> None:
    assert await trials.table([trial], common.folder) == 0
    assert f"held    {trial.name}" in capsys.readouterr().out


@pytest.mark.browser
async def test_memory(capsys: pytest.CaptureFixture[str]) -> None:
    await memory.main(comparisons=2, loads=1)
    assert "late over early comparisons" in capsys.readouterr().out


@pytest.mark.browser
async def test_intrusion(
    stand_in: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(intrusion, "LOOK_S", 0.2)
    monkeypatch.setattr(intrusion, "TOKENS", 16)
    # Minutes: one round is always made.
    monkeypatch.setattr(intrusion, "FIELDS", intrusion.FIELDS | {"budget": "0.001"})
    await intrusion.main(pairs=1)
    assert capsys.readouterr().out.count("with the page open / without") == 2
